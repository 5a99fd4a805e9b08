package orchestrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// mapPlaces are the folders above a unit's folder of maps: net and data, where
// there are several.
func (r *Resolved) mapPlaces(u *Unit) []string {
	var out []string
	if len(r.Plan.Nets) > 1 {
		var names []string
		for _, n := range r.Plan.Nets {
			names = append(names, n.name())
		}
		out = append(out, slugAmong(u.Net.Name, names))
	}
	if len(r.Plan.Data) > 1 {
		var names []string
		for _, d := range r.Plan.Data {
			names = append(names, d.EntryName())
		}
		out = append(out, slugAmong(u.Data.Name, names))
	}
	return out
}

// slugAmong is a name's slug, with a hash where another name has the same one.
func slugAmong(name string, names []string) string {
	for _, other := range names {
		if other != name && slug(other) == slug(name) {
			return slug(name) + "-" + shortHash(name)
		}
	}
	return slug(name)
}

// mapName is what tells apart the folders of maps of a net and data.
func mapName(p Params, seed uint64) string {
	return fmt.Sprint(seed, " ", string(canonical(p)))
}

// mapFolders names the folder of every point and seed, by mapName: the method's slug,
// with reduction, target and seed where the plan has several.
func (r *Resolved) mapFolders() map[string]string {
	seeds := r.Plan.Seeds
	if len(seeds) == 0 {
		seeds = []uint64{0}
	}
	several := map[string]bool{}
	for _, k := range []string{reduceKey, "target"} {
		for _, p := range r.Points {
			several[k] = several[k] || plain(p[k]) != plain(r.Points[0][k])
		}
	}
	out, users := map[string]string{}, map[string]int{}
	for _, p := range r.Points {
		for _, seed := range seeds {
			name := slug(p.Text(methodKey))
			for _, k := range []string{reduceKey, "target"} {
				if several[k] {
					name += "-" + slug(plain(p[k]))
				}
			}
			if len(seeds) > 1 {
				name += fmt.Sprintf("-seed-%d", seed)
			}
			out[mapName(p, seed)] = name
			users[name]++
		}
	}
	for key, name := range out {
		if users[name] > 1 { // of two methods that only differ in what a slug leaves out
			out[key] = name + "-" + shortHash(key)
		}
	}
	return out
}

// maxSlug keeps names of folders short; a hash stands for the rest.
const maxSlug = 96

// slug makes a folder's name of a method's: smoothgrad(gradient,samples=15) is
// smoothgrad-gradient-samples-15.
func slug(text string) string {
	out := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_':
			return c
		case c == ')':
			return -1
		}
		return '-'
	}, text)
	out = strings.TrimLeft(out, ".")
	if len(out) > maxSlug || out == "" {
		out = out[:min(len(out), maxSlug)] + "-" + shortHash(text)
	}
	return out
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
