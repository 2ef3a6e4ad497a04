package spec

import (
	"reflect"

	"github.com/goccy/go-yaml/ast"
)

// section is a mapping whose keys people choose, in the order of the file.
type section[T any] struct {
	Entries []entry[T]
	Begin   Position
}

// entry is one key of a section. A null value removes what a preset set.
type entry[T any] struct {
	Key    string
	At     Position
	Remove bool
	Value  T
	// quoted: the key stands in quotes.
	quoted bool
	// preset names the preset that the entry comes from.
	preset string
}

func (s *section[T]) readNode(d *decoder, node ast.Node) {
	pairs, ok := pairsOf(node)
	if !ok {
		d.fault(d.position(node), "%s: want a mapping of names to values", excerpt(node))
		return
	}
	s.Begin = d.position(node)
	seen := map[string]Position{}
	for _, pair := range pairs {
		key, ok := d.key(pair, seen)
		if !ok {
			continue
		}
		read := entry[T]{Key: key.Text, At: key.Position, quoted: key.quoted()}
		if isNull(pair.Value) {
			read.Remove = true
		} else {
			d.value(pair.Value, reflect.ValueOf(&read.Value).Elem())
		}
		s.Entries = append(s.Entries, read)
	}
}

// present lists the entries that have a value, and refuses the others: only in a
// space does null mean something.
func present[T any](c *collector, s section[T]) []entry[T] {
	kept := make([]entry[T], 0, len(s.Entries))
	for _, entry := range s.Entries {
		if entry.Remove {
			c.fault(entry.At, "%s has no value; remove the key, or give it one", entry.Key)
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}
