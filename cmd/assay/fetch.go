package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/weights"
)

func fetchCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:      "fetch",
		Usage:     "get published weights into the cache",
		ArgsUsage: "NAME",
		Description: "NAME is a net of assay list nets, or a published file. It goes to ${XDG_CACHE_HOME:-~/.cache}/assay/weights and its\n" +
			"SHA-256 has to begin as its name says. After a cut connection, a full disk or a stop the same command goes on.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "list", Usage: "list what is published, and what is there"},
			&cli.StringFlag{Name: "version", Usage: "a published `VERSION` of the net, for example V2 (default: the first that --list shows)"},
			&cli.StringFlag{Name: "mirror", Usage: "get it from another `URL`; the checksum is the same"},
		}, outputFlags()...),
		Action: func(c *cli.Context) error {
			if c.Bool("list") {
				return listPublished(env, c.Bool("json"), c.Args().Slice())
			}
			if c.NArg() != 1 {
				return usage.Errorf("assay fetch takes the name of a net or file, there are %d arguments: assay fetch --list shows them", c.NArg())
			}
			name := c.Args().First()
			p := newProgress(env, c.Bool("json"), c.Bool("quiet"))
			defer p.close()
			path, err := weights.Fetch(c.Context, weights.FetchOptions{Name: name, Version: c.String("version"), BaseURL: c.String("mirror"),
				Note: p.note,
				Progress: func(done, total int64) {
					p.event(orchestrate.Event{Kind: orchestrate.Step, Stage: "fetching " + name + " (KiB)", Done: int(done >> 10), Total: int(max(total, done) >> 10)})
				}})
			if err != nil {
				return err
			}
			p.close()
			if c.Bool("json") {
				return printJSON(env, map[string]string{"path": path})
			}
			_, err = fmt.Fprintln(env.stdout, path)
			return err
		},
	}
}

// published is a published file and whether the cache has it.
type published struct {
	weights.PublishedFile
	Cached bool `json:"cached"`
}

func publishedFiles() ([]published, string, error) {
	dir, err := weights.CacheDir()
	if err != nil {
		return nil, "", err
	}
	var out []published
	for _, p := range weights.Published() {
		_, err := os.Stat(filepath.Join(dir, p.File))
		out = append(out, published{p, err == nil})
	}
	return out, dir, nil
}

// listPublished lists all, or the files of the named nets.
func listPublished(env environment, asJSON bool, nets []string) error {
	files, dir, err := publishedFiles()
	if err != nil {
		return err
	}
	for _, net := range nets {
		if !slices.ContainsFunc(files, func(p published) bool { return p.Net == net }) {
			return usage.Errorf("no weights of %s are published: assay fetch --list shows what is", net)
		}
	}
	if len(nets) > 0 {
		files = slices.DeleteFunc(files, func(p published) bool { return !slices.Contains(nets, p.Net) })
	}
	if asJSON {
		return printJSON(env, files)
	}
	t := table{header: []string{"net", "version", "file", "MiB", "top-1 %", "preset", "cached", "licence"}, right: map[int]bool{3: true, 4: true}}
	for _, p := range files {
		size, top1, cached := "-", "-", "no"
		if p.MiB > 0 {
			size = fmt.Sprintf("%.1f", p.MiB)
		}
		if p.Top1 > 0 {
			top1 = fmt.Sprintf("%.2f", p.Top1)
		}
		if p.Cached {
			cached = "yes"
		}
		t.add(p.Net, p.Version, p.File, size, top1, p.Preset, cached, p.Licence)
	}
	t.print(env.stdout)
	_, err = fmt.Fprintf(env.stdout, "\ntop-1: as published, on ImageNet's validation images (torchvision's weights enums) or CIFAR-10's test images (akamaster's README).\n"+
		"cached: in %s; --weights VERSION takes another than the net's first.\n", dir)
	return err
}
