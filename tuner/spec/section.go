package spec

import (
	"reflect"

	"github.com/goccy/go-yaml/ast"
	"github.com/invopop/jsonschema"
)

// Section is a mapping whose keys people choose, in the order of the file.
type Section[T any] struct {
	Entries []Entry[T]
}

// Entry is one key of a Section. A null value removes what a preset set.
type Entry[T any] struct {
	Key    string
	At     Position
	Remove bool
	Value  T
}

func (s *Section[T]) readNode(d *decoder, node ast.Node) {
	pairs, ok := pairsOf(node)
	if !ok {
		d.fault(positionOf(node), "%s: want a mapping of names to values", excerpt(node))
		return
	}
	seen := map[string]Position{}
	for _, pair := range pairs {
		key, at, ok := d.key(pair, seen)
		if !ok {
			continue
		}
		entry := Entry[T]{Key: key, At: at}
		if isNull(pair.Value) {
			entry.Remove = true
		} else {
			d.value(pair.Value, reflect.ValueOf(&entry.Value).Elem())
		}
		s.Entries = append(s.Entries, entry)
	}
}

// JSONSchema describes a section as an object with any keys.
func (Section[T]) JSONSchema() *jsonschema.Schema {
	reflector := newReflector()
	value := reflector.ReflectFromType(reflect.TypeFor[T]())
	value.Version = ""
	return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{OneOf: []*jsonschema.Schema{value, {Type: "null"}}}}
}
