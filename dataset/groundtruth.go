package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// ImageNet's validation images are published in one folder, and their classes
// in the development kit (ILSVRC2012_devkit_t12, readme.txt 2.2): line n of
// data/ILSVRC2012_validation_ground_truth.txt is the ILSVRC2012_ID, 1..1000, of
// image n, and data/meta.mat says which WordNet id that is. These numbers are
// not the classes of nets, which number the WordNet ids in name order.
const (
	groundTruthName = "ILSVRC2012_validation_ground_truth.txt"
	metaName        = "meta.mat"
	// maxMetaBytes bounds meta.mat, which has some 100 kB.
	maxMetaBytes = 16 << 20
)

// validationImage matches names of validation images and their number.
var validationImage = regexp.MustCompile(`^ILSVRC2012_val_([0-9]{8})\.[A-Za-z]+$`)

// isGroundTruth is true of a file whose first line is a number alone.
func isGroundTruth(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			_, err := strconv.Atoi(string(line))
			return err == nil
		}
	}
	return false
}

// applyGroundTruth gives every validation image the class that the development
// kit has for it. meta reads the meta.mat beside the labels.
func applyGroundTruth(set *Set, ids []string, text []byte, from string, meta func() ([]byte, error), netClasses int) ([]int, error) {
	numbers, err := readGroundTruth(text, from)
	if err != nil {
		return nil, err
	}
	raw, err := meta()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usage.Errorf("dataset: %s holds numbers of the development kit: want the kit's %s beside it, which says what they mean, or lines \"file class\"", from, metaName)
		}
		return nil, usage.Errorf("dataset: %s beside %s: %w", metaName, from, err)
	}
	classOf, err := devkitClasses(strings.TrimSuffix(from, groundTruthName)+metaName, raw)
	if err != nil {
		return nil, err
	}
	classes := make([]int, len(ids))
	for i, id := range ids {
		m := validationImage.FindStringSubmatch(baseOf(id))
		if m == nil {
			return nil, usage.Errorf("dataset: %s: no label for %s: line n is for ILSVRC2012_val_0000000n.JPEG; want names like that, or lines \"file class\"", from, id)
		}
		n, _ := strconv.Atoi(m[1])
		if n < 1 || n > len(numbers) {
			return nil, usage.Errorf("dataset: %s: no label for %s: it has %d lines", from, id, len(numbers))
		}
		class, ok := classOf[numbers[n-1]]
		if !ok {
			return nil, usage.Errorf("dataset: %s:%d: %d for %s: %s has no such ILSVRC2012_ID among its 1000", from, n, numbers[n-1], id, metaName)
		}
		if netClasses > 0 && class >= netClasses {
			return nil, usage.Errorf("dataset: %s:%d: class %d of %s: want 0..%d", from, n, class, id, netClasses-1)
		}
		classes[i] = class
	}
	set.HasLabels, set.ClassNames = true, ImageNetNames()
	return classes, nil
}

// readGroundTruth reads one number a line.
func readGroundTruth(text []byte, from string) ([]int, error) {
	var numbers []int
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		n, err := strconv.Atoi(line)
		if err != nil || n < 1 || n > 1000 {
			if line == "" {
				continue
			}
			return nil, usage.Errorf("dataset: %s:%d: %.40q: want a number of the development kit, 1..1000", from, len(numbers)+1, line)
		}
		numbers = append(numbers, n)
	}
	if err := lines.Err(); err != nil {
		return nil, usage.Errorf("dataset: %s: after line %d: %w", from, len(numbers), err)
	}
	return numbers, nil
}

// devkitClasses reads meta.mat: the class, 0..999, of each ILSVRC2012_ID. Ids
// beyond 1000 are of groups of classes.
func devkitClasses(name string, raw []byte) (map[int]int, error) {
	f, err := openMat(&blob{ReaderAt: bytes.NewReader(raw), name: name, size: int64(len(raw))})
	if err != nil {
		return nil, err
	}
	classOf := map[int]int{}
	err = f.each(func(h *matHead) error {
		if h.name != "synsets" {
			return nil
		}
		list, err := h.records("ILSVRC2012_ID", "WNID")
		if err != nil {
			return f.damaged(err)
		}
		for i, r := range list {
			id, isNumber := r["ILSVRC2012_ID"].(float64)
			wnid, isText := r["WNID"].(string)
			if !isNumber || !isText {
				return f.damaged(fmt.Errorf("synset %d without ILSVRC2012_ID or WNID", i))
			}
			if id > 1000 {
				continue
			}
			class, ok := wnidClass(wnid)
			if !ok {
				return f.damaged(fmt.Errorf("synset %v is %s: want one of ImageNet's 1000 WordNet ids", id, usage.Quote(wnid)))
			}
			classOf[int(id)] = class
		}
		return nil
	})
	if err == nil && len(classOf) == 0 {
		err = usage.Errorf("dataset: %s has no synsets: want the development kit's %s", name, metaName)
	}
	return classOf, err
}
