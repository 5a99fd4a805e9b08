"""Nets in which every activation and every pool is a module of its own, called
once: what libraries that hook modules need to give right numbers
(docs/parity.md says what they give otherwise). Parameters keep their names.
"""

import types

import torch
import torchvision
from torch import nn

from golden_nets import fill, gain, parameter


class Relu6(nn.ReLU):
    """min(max(x, 0), 6) for hooks that look for nn.ReLU: captum rectifies what
    its autograd gives, g where 0 < x < 6."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return nn.functional.hardtanh(x, 0, 6)


class Lambda(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


def own_forward(module, f):
    module.forward = types.MethodType(f, module)


class Shortcut(nn.Module):
    """Every second pixel, zero channels on both sides."""

    def __init__(self, extra):
        super().__init__()
        self.extra = extra

    def forward(self, x):
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.extra // 2, self.extra // 2))


class CifarBlock(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.shortcut = Shortcut(after - before) if after != before else nn.Identity()
        self.relu2 = nn.ReLU()

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(y + self.shortcut(x))


class CifarResNet(nn.Module):
    """He et al. 2016, section 4.2, option A."""

    def __init__(self, blocks, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU()
        stage = lambda before, after, stride: nn.Sequential(
            CifarBlock(before, after, stride), *(CifarBlock(after, after, 1) for _ in range(blocks - 1)))
        self.layer1 = stage(16, 16, 1)
        self.layer2 = stage(16, 32, 2)
        self.layer3 = stage(32, 64, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(64, classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        return self.linear(self.avgpool(self.layer3(self.layer2(self.layer1(x)))).flatten(1))


def resnet18():
    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(y + shortcut)

    net = torchvision.models.resnet18()
    net.relu = nn.ReLU()
    for block in net.modules():
        if isinstance(block, torchvision.models.resnet.BasicBlock):
            del block.relu
            block.relu1, block.relu2 = nn.ReLU(), nn.ReLU()
            own_forward(block, forward)
    return net


def vgg16():
    net = torchvision.models.vgg16()
    for module in net.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    return net


def densenet121():
    net = torchvision.models.densenet121()
    for module in net.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    net.relu, net.avgpool = nn.ReLU(), nn.AdaptiveAvgPool2d(1)
    own_forward(net, lambda self, x: self.classifier(self.avgpool(self.relu(self.features(x))).flatten(1)))
    return net


def with_relu6(module):
    for name, child in module.named_children():
        if isinstance(child, nn.ReLU6):
            setattr(module, name, Relu6())
        else:
            with_relu6(child)
    return module


def mobilenet_v2():
    net = with_relu6(torchvision.models.mobilenet_v2())
    net.avgpool = nn.AdaptiveAvgPool2d(1)
    own_forward(net, lambda self, x: self.classifier(self.avgpool(self.features(x)).flatten(1)))
    return net


def efficientnet_lite0():
    from efficientnet_lite_pytorch import EfficientNet

    def block(self, x, drop_connect_rate=None):
        y = x
        if self._block_args.expand_ratio != 1:
            y = self._relu0(self._bn0(self._expand_conv(y)))
        y = self._relu1(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return y + x if y.shape == x.shape and self._depthwise_conv.stride[0] == 1 else y

    def forward(self, x):
        x = self._relu0(self._bn0(self._conv_stem(x)))
        for one in self._blocks:
            x = one(x)
        x = self._relu1(self._bn1(self._conv_head(x)))
        return self._fc(self._avg_pooling(x).flatten(1))

    net = EfficientNet.from_name("efficientnet-lite0")
    for one in [net, *net._blocks]:
        one._relu0, one._relu1 = Relu6(), Relu6()
        own_forward(one, forward if one is net else block)
    return net


# By name: the module, how it stands for the target layers that our nets name.
NETS = {
    "cifar-resnet20": (lambda: CifarResNet(3), {"": "layer3"}),
    "resnet18": (resnet18, {"": "layer4"}),
    "vgg16": (vgg16, {"": "features.29"}),
    "densenet121": (densenet121, {"": "relu"}),
    "mobilenet-v2": (mobilenet_v2, {"": "features"}),
    "efficientnet-lite0": (efficientnet_lite0, {"": "_relu1"}),
}


def module(net, state=None):
    """In double precision; state None: parameters from the formula."""
    built = NETS[net][0]().double()
    if state is None:
        state = {name: parameter(name, value.shape, gain(net)).to(value.dtype)
                 for name, value in built.state_dict().items()}
    built.load_state_dict(state)
    return built.eval()


def layer(net, built, name):
    """Where a class activation map looks; "" is the net's default."""
    return built.get_submodule(NETS[net][1].get(name, name))
