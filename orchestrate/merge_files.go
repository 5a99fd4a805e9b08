package orchestrate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/assay-xai/assay/internal/record"
)

// lockFile keeps two merges out of one folder. It goes when the folder is in place.
const lockFile = ".lock"

// build writes all of the run to folder but its summary.
func (m *merge) build(ctx context.Context, folder string) error {
	if err := writeStream(filepath.Join(folder, record.FileName), func(w io.Writer) error { return m.copyRecords(ctx, w) }); err != nil {
		return err
	}
	if err := m.copyTraining(ctx, folder); err != nil {
		return err
	}
	text, err := m.Plan.Marshal()
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(folder, PlanFile), text); err != nil {
		return err
	}
	if err := m.mergeEnvironments(folder); err != nil {
		return err
	}
	if names := m.ClassNames(); names != nil {
		if err := writeJSON(filepath.Join(folder, ClassesFile), names); err != nil {
			return err
		}
	}
	if err := m.mergeViews(ctx, folder); err != nil {
		return err
	}
	if m.Study.Merge == nil {
		return nil
	}
	parts := make([]MergePart, len(m.shards))
	for i, u := range m.units {
		p := &parts[m.share[i]-1]
		p.Units = append(p.Units, u)
	}
	for i, s := range m.shards {
		parts[i].Out = s.out
	}
	return m.Study.Merge(ctx, m.Resolved, folder, m.units, parts)
}

// copyRecords writes the lines of all records in plan order.
func (m *merge) copyRecords(ctx context.Context, w io.Writer) error {
	files := make([]*os.File, len(m.shards))
	defer func() {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}()
	for i, u := range m.units {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := m.where[u.ID]
		if files[at.shard] == nil {
			f, err := os.Open(filepath.Join(m.shards[at.shard].out, record.FileName))
			if err != nil {
				return fmt.Errorf("reading records: %w", err)
			}
			files[at.shard] = f
		}
		if n, err := io.Copy(w, io.NewSectionReader(files[at.shard], at.from, at.to-at.from)); err != nil {
			return err
		} else if n != at.to-at.from {
			return fmt.Errorf("reading %s: %w", files[at.shard].Name(), io.ErrUnexpectedEOF)
		}
		m.job.Progress(Event{Kind: Step, Stage: StageMerge, Done: i + 1, Total: len(m.units)})
	}
	return nil
}

// errDiffers ends a comparison.
var errDiffers = errors.New("differs")

// comparing is a writer of what a reader should have.
type comparing struct {
	r      *bufio.Reader
	buffer []byte
}

func (c *comparing) Write(b []byte) (int, error) {
	if cap(c.buffer) < len(b) {
		c.buffer = make([]byte, len(b))
	}
	have := c.buffer[:len(b)]
	if _, err := io.ReadFull(c.r, have); err != nil || !bytes.Equal(have, b) {
		return 0, errDiffers
	}
	return len(b), nil
}

// sameRecords says whether a file has the merged records, byte by byte.
func (m *merge) sameRecords(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading records: %w", err)
	}
	defer f.Close()
	c := &comparing{r: bufio.NewReaderSize(f, 1<<16)}
	if err := m.copyRecords(context.Background(), c); err != nil {
		if errors.Is(err, errDiffers) {
			return false, nil
		}
		return false, err
	}
	_, err = c.r.ReadByte()
	return errors.Is(err, io.EOF), nil
}

// copyTraining takes over the nets that the plan trains, which every shard has
// trained alike, and has the plan name them there.
func (m *merge) copyTraining(ctx context.Context, folder string) error {
	if len(m.Plan.Train) == 0 {
		return nil
	}
	from := filepath.Join(m.shards[0].out, TrainFolder)
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil // was done where the plan was resolved
	}
	if err := copyTree(ctx, from, filepath.Join(folder, TrainFolder)); err != nil {
		return err
	}
	to := absolute(filepath.Join(m.job.Out, TrainFolder))
	moved := func(weights *string) {
		if rest, ok := strings.CutPrefix(*weights, absolute(from)+string(filepath.Separator)); ok {
			*weights = filepath.Join(to, rest)
		}
	}
	for i := range m.Plan.Nets {
		moved(&m.Plan.Nets[i].Weights)
	}
	moved(&m.Plan.Generator.Weights)
	return nil
}

// mergeEnvironments writes where the first shard ran, and of the others where they
// differ from it.
func (m *merge) mergeEnvironments(folder string) error {
	var first map[string]any
	others := map[string]any{}
	for i, s := range m.shards {
		text, err := os.ReadFile(filepath.Join(s.out, EnvFile))
		if err != nil {
			return fmt.Errorf("reading where %s ran: %w", s.plan.Shard.Words(), err)
		}
		var env map[string]any
		if err := json.Unmarshal(text, &env); err != nil {
			return fmt.Errorf("reading %s: %w", filepath.Join(s.out, EnvFile), err)
		}
		if i == 0 {
			first = env
		} else if d := unlike(first, env); len(d) > 0 {
			others[s.plan.Shard.String()] = d
		}
	}
	if len(others) > 0 {
		first["shards"] = others
	}
	return writeJSON(filepath.Join(folder, EnvFile), first)
}

// freeMemory is a fact of a moment, not of a machine.
const freeMemory = "memoryFree"

// unlike is what b says and a does not.
func unlike(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range b {
		was := a[k]
		x, both := was.(map[string]any)
		y, maps := v.(map[string]any)
		switch {
		case k == freeMemory:
		case both && maps:
			if d := unlike(x, y); len(d) > 0 {
				out[k] = d
			}
		case !reflect.DeepEqual(was, v):
			out[k] = v
		}
	}
	return out
}

// mergeViews puts the views of images together; each shard has those of its own.
func (m *merge) mergeViews(ctx context.Context, folder string) error {
	index := map[string]string{}
	for _, s := range m.shards {
		v, err := newViews(s.out, 0, 0)
		if err != nil {
			return err
		}
		for id, name := range v.index {
			if !filepath.IsLocal(name) {
				return fmt.Errorf("reading %s: a view called %q", filepath.Join(s.out, ImagesIndex), name)
			}
			index[id] = name
		}
		if err := copyTree(ctx, filepath.Join(s.out, ImagesFolder), filepath.Join(folder, ImagesFolder)); err != nil {
			return err
		}
	}
	if len(index) == 0 {
		return nil
	}
	return writeJSON(filepath.Join(folder, ImagesIndex), index)
}

// copyTree copies the files in and below a folder, but for temporary ones that killed
// runs leave. A folder that is not there has none.
func copyTree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == from {
			return fs.SkipAll
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if e.IsDir() {
			if err := os.MkdirAll(target, 0o777); err != nil {
				return fmt.Errorf("copying %s: %w", path, err)
			}
			return nil
		}
		if temporaryName.MatchString(e.Name()) {
			return nil
		}
		in, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("copying: %w", err)
		}
		defer in.Close()
		return writeStream(target, func(w io.Writer) error { _, err := io.Copy(w, in); return err })
	})
}

// clearFolder removes what a killed merge has left, but for the lock.
func clearFolder(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("clearing %s: %w", path, err)
	}
	for _, e := range entries {
		if e.Name() == lockFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(path, e.Name())); err != nil {
			return fmt.Errorf("clearing %s: %w", path, err)
		}
	}
	return nil
}

// putInPlace calls a folder by its last name, which no folder with files has.
func putInPlace(making, out string) error {
	if err := syncFolder(making); err != nil {
		return err
	}
	if err := os.Remove(out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("out: %w", err)
	}
	if err := os.Rename(making, out); err != nil {
		return fmt.Errorf("putting the run in place: %w", err)
	}
	if err := unlock(out); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(out))
}

// unlock removes the lock of a folder that is in place; a kill may have left it.
func unlock(out string) error {
	if err := os.Remove(filepath.Join(out, lockFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unlocking %s: %w", out, err)
	}
	return nil
}
