package orchestrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-xai/assay/dataset"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/weights"
)

// NetFile is a net that comes from a file instead of the catalogue
// (docs/own-models.md).
type NetFile struct {
	// Name is the file's name without folder.
	Name string
	// Content is the whole file: a net file (JSON), or TorchScript.
	Content []byte
	// Script says that it is TorchScript, whose weights are in the file.
	Script bool
	// Input is the shape of one row that TorchScript is asked with, [C,H,W] or
	// [F]; net files say their own.
	Input []int
}

// maxNetFile bounds the size of files that are taken for nets.
const maxNetFile = 8 << 30

// isNetFile tells a path from an id of the catalogue.
func isNetFile(net string) bool {
	switch strings.ToLower(filepath.Ext(net)) {
	case ".json", ".pt", ".pth", ".ts", ".torchscript":
		return true
	}
	return strings.ContainsRune(net, filepath.Separator)
}

// readNetFile reads the file behind a net of a plan. TorchScript is a zip file,
// anything else is taken for a net file.
func readNetFile(path string) (*NetFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usage.Errorf("net: no such file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxNetFile {
		return nil, usage.Errorf("net: %s is no regular file of at most %d GiB", path, maxNetFile>>30)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, usage.Errorf("net: %w", err)
	}
	f := &NetFile{Name: filepath.Base(path), Content: content, Script: len(content) > 1 && content[0] == 'P' && content[1] == 'K'}
	if !f.Script && !json.Valid(content) {
		return nil, usage.Errorf("net: %s is neither a net file (JSON, written by scripts/export_torch.py) nor TorchScript; weights alone go with --weights", path)
	}
	return f, nil
}

// netHeader is what Go reads of a net file; the rest is the device side's.
type netHeader struct {
	Weights    string          `json:"weights"`
	Preset     json.RawMessage `json:"preset"`
	ClassNames []string        `json:"classNames"`
}

func (f *NetFile) header() (netHeader, error) {
	var h netHeader
	if f.Script {
		return h, nil
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(f.Content, &h); {
	case errors.As(err, &wrong):
		return h, usage.Errorf("net: %s: %s holds %s: want an object with weights (a file name), classNames (a list of names)", f.Name, orElse(wrong.Field, "it"), wrong.Value)
	case err != nil:
		return h, usage.Errorf("net: %s: %w", f.Name, err)
	}
	return h, nil
}

// preset is the one that the file names or holds; false: it says nothing.
func (h netHeader) preset(name string) (dataset.Preset, bool, error) {
	if len(h.Preset) == 0 {
		return dataset.Preset{}, false, nil
	}
	var id string
	if json.Unmarshal(h.Preset, &id) == nil {
		p, err := dataset.PresetByID(id)
		return p, true, err
	}
	p, err := dataset.ParsePreset(name, h.Preset) // JSON is YAML
	return p, true, err
}

// fileNet resolves a net of the plan that is a file.
func (r *resolver) fileNet(ctx context.Context, i int, row []int) error {
	n := &r.Plan.Nets[i]
	fail := func(key string, err error) error { return r.Plan.errorf(netPath(i, key), "%w", err) }
	file, err := readNetFile(n.Net)
	if err != nil {
		return fail("net", err)
	}
	header, err := file.header()
	if err != nil {
		return fail("net", err)
	}
	preset, known, err := header.preset(file.Name)
	if err != nil {
		return fail("net", err)
	}
	if !known || !n.Preset.IsZero() {
		fallback := "imagenet"
		if len(row) == 1 {
			fallback = "table"
		}
		if !known && n.Preset.IsZero() && fallback == "imagenet" {
			r.Warnings = append(r.Warnings, n.Net+" does not say how images become its input: taking preset imagenet, --preset names another")
		}
		if preset, err = n.Preset.choose(fallback); err != nil {
			return fail("preset", err)
		}
	}
	out := &ResolvedNet{Index: len(r.Nets), Name: n.name(), File: file, Preset: preset, Path: n.Net, ClassNames: header.ClassNames}
	if file.Script {
		if n.Weights != "" {
			return r.Plan.errorf(netPath(i, "weights"), "%s holds its weights: leave --weights out", n.Net)
		}
		if file.Input, err = scriptInput(preset, row); err != nil {
			return fail("preset", err)
		}
	} else if out.Path, err = fileWeights(n, header); err != nil {
		return fail("weights", err)
	}
	if out.Info, err = r.Backend.DescribeFile(ctx, *file); err != nil {
		return fail("net", err)
	}
	if len(out.Info.Input) == 1 {
		out.Features = out.Info.Input[0]
	}
	if out.Info.BlackBox {
		r.Warnings = append(r.Warnings, n.Net+" runs as a black box: "+out.Info.Reason)
	}
	if _, warnings, err := out.fileState(); err != nil {
		return fail("weights", err)
	} else {
		for _, w := range warnings {
			r.Warnings = append(r.Warnings, out.Path+": "+w)
		}
	}
	if n.Hash != "" && n.Hash != out.Hash {
		return r.Plan.errorf(netPath(i, "hash"), "net %s with its weights has the hash %.12s..., the plan was made with %.12s...", n.Net, out.Hash, n.Hash)
	}
	r.Nets = append(r.Nets, out)
	n.Name, n.Net, n.Hash, n.Classes = out.Name, absolute(n.Net), out.Hash, out.Info.Classes
	n.Preset = PresetChoice{Preset: &out.Preset}
	if !file.Script {
		n.Weights = absolute(out.Path)
	}
	return nil
}

// name stands for the net in records and tables: its own, the catalogue's id, or
// the file's name without folder and ending.
func (n NetPlan) name() string {
	if n.Name != "" || !isNetFile(n.Net) {
		return orElse(n.Name, n.Net)
	}
	base := filepath.Base(n.Net)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// scriptInput is the shape of one row: the data's, or what the preset makes of images.
func scriptInput(p dataset.Preset, row []int) ([]int, error) {
	if row != nil {
		return row, nil
	}
	channels := p.Channels
	if channels == 0 {
		channels = 3
	}
	switch {
	case p.CropHeight > 0:
		return []int{channels, p.CropHeight, p.CropWidth}, nil
	case p.Resize == dataset.ResizeSquash:
		return []int{channels, p.Height, p.Width}, nil
	}
	return nil, usage.Errorf("preset %s leaves images of any size: TorchScript wants one that crops or squashes (--preset)", p.ID)
}

// fileWeights is the weights file of a net file: the plan's, else the one that
// it names, beside it.
func fileWeights(n *NetPlan, h netHeader) (string, error) {
	switch {
	case n.Weights != "":
		return n.Weights, nil
	case h.Weights == "":
		return "", usage.Errorf("%s names no weights: give a file with --weights", n.Net)
	case filepath.IsAbs(h.Weights):
		return h.Weights, nil
	}
	return filepath.Join(filepath.Dir(n.Net), h.Weights), nil
}

// fileState reads the weights of a net file and the hash of both together.
// TorchScript has its weights inside: then there is no state.
func (n *ResolvedNet) fileState() (map[string]weights.Tensor, []string, error) {
	hash := sha256.Sum256(n.File.Content)
	sum := hex.EncodeToString(hash[:])
	if n.File.Script {
		return nil, nil, n.setHash(sum)
	}
	sd, err := weights.Open(n.Path)
	if err != nil {
		return nil, nil, err
	}
	both := sha256.Sum256([]byte(sum + sd.Hash))
	if err := n.setHash(hex.EncodeToString(both[:])); err != nil {
		return nil, nil, err
	}
	state, warnings, err := weights.Match(sd, n.Info.Parameters)
	if err != nil {
		return nil, nil, usage.Errorf("%s does not fit net %s: %w", n.Path, n.File.Name, err)
	}
	return state, warnings, nil
}

// setHash is told the hash whenever the files are read; it must stay the same.
func (n *ResolvedNet) setHash(hash string) error {
	if n.Hash != "" && n.Hash != hash {
		return usage.Errorf("weights %s changed while they were in use", n.Path)
	}
	if n.Hash == "" {
		n.Hash = hash
	}
	return nil
}

// anyFile says whether any net of the plan is a file: what kind of input those
// take is known only when they are opened.
func (p *Plan) anyFile() bool {
	return slices.ContainsFunc(p.Nets, func(n NetPlan) bool { return isNetFile(n.Net) })
}

// DescribeNet answers for a net of the catalogue or in a file, without weights.
func DescribeNet(ctx context.Context, b Backend, net string) (NetInfo, error) {
	if !isNetFile(net) {
		return b.Describe(ctx, net, 0, 0)
	}
	file, err := readNetFile(net)
	if err != nil {
		return NetInfo{}, err
	}
	if file.Script {
		file.Input = []int{3, 224, 224}
	}
	return b.DescribeFile(ctx, *file)
}
