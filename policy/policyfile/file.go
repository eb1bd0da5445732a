package policyfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/prunectl/prunectl/policy"
)

// File is a policy file that was read and found without fault.
type File struct {
	Path   string
	SHA256 string // of the bytes as they were given, in hex
	Budget policy.Budget
	Sweeps []policy.Sweep // in the order of the file; what `defaults` says is filled in
	Purges []policy.Purge // the same

	places map[path]span
}

// Parse reads a policy file; name is what messages call it. The error is of type [Errors] and holds every fault of the
// file, in its order; only what makes it no YAML at all ends the search at once. Beside an error the File is nil.
func Parse(name string, data []byte) (*File, error) {
	sum := sha256.Sum256(data)
	r := &reader{
		file:   &File{Path: name, SHA256: hex.EncodeToString(sum[:]), places: map[path]span{}},
		broken: faults{},
	}
	if root := r.yaml(data); root != nil {
		r.top(root)
	}
	if len(r.errs) > 0 {
		slices.SortStableFunc(r.errs, func(a, b Error) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, r.errs
	}
	return r.file, nil
}

// Position is where the key of a sweep stands, as file:line:column: its value, or where that key is not written, the
// nearest key above it. Keys are written as in messages ("guard.owner.terminal"); one item of a list is the list's key, a
// dot and the item ("guard.owner.terminal.completed"), or where the items are mappings or tables, its number from 0
// ("children.0.table", "cascades.1"). The key "" is the sweep's name, and the sweep "" is the top of the file ("budget.time").
func (f *File) Position(sweep, key string) string {
	at := f.place(path{sweep, key}, false)
	return fmt.Sprintf("%s:%d:%d", f.Path, at.line, at.column)
}

// KeyPosition is [File.Position] of the key itself rather than of its value: for a finding that the key is wrong, as in a
// window by state whose state does not exist.
func (f *File) KeyPosition(sweep, key string) string {
	at := f.place(path{sweep, key}, true)
	return fmt.Sprintf("%s:%d:%d", f.Path, at.line, at.column)
}

// PurgePosition is [File.Position] of a key of a purge ("tables.0.column", "tables.1.children.0.key"). A table that keeps its
// rows is found by its whole name, however it is written ("exclude.public.audit_log").
func (f *File) PurgePosition(purge, key string) string {
	return f.Position("", purgePath(purge, key).key)
}

func (f *File) place(p path, atKey bool) place {
	for {
		if s, ok := f.places[p]; ok {
			if atKey {
				return s.key
			}
			return s.value
		}
		if p == (path{}) {
			return place{1, 1}
		}
		p, atKey = p.parent(), true
	}
}

// path names a key: a sweep, and the key in it. A key at the top has no sweep, and the purges are keys at the top
// ("purges.tenant.tables").
type path struct{ sweep, key string }

// String is the path for a message.
func (p path) String() string {
	switch {
	case p.sweep == "" && p.key == "":
		return ""
	case p.sweep == "":
		return printable(p.key)
	case p.key == "":
		return printable(p.sweep)
	}
	return printable(p.sweep + "." + p.key)
}

// child is the path one key further in. What stands under `sweeps` are the sweeps.
func (p path) child(key string) path {
	switch {
	case p == path{key: "sweeps"}:
		return path{sweep: key}
	case p.key == "":
		return path{p.sweep, key}
	}
	return path{p.sweep, p.key + "." + key}
}

func (p path) parent() path {
	if p.key == "" {
		return path{}
	}
	i := strings.LastIndexByte(p.key, '.')
	return path{p.sweep, p.key[:max(i, 0)]}
}

// place is a position in the file, from 1; columns count characters.
type place struct{ line, column int }

// span is where a key and its value stand.
type span struct{ key, value place }
