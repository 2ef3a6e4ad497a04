package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// The decoder turns YAML into the typed file and gathers every fault with its
// position instead of stopping at the first. Scalars keep their source text:
// what a value means is decided by the knob it belongs to, not by YAML.

// decoder reads one file.
type decoder struct {
	*collector
	// at, when set, is the place of everything: what a preset brings is told
	// where the preset is named.
	at *Position
}

// nodeReader is a field type that reads its own node.
type nodeReader interface {
	readNode(d *decoder, node ast.Node)
}

// places remembers where a mapping of the file begins and where the values of
// its keys stand.
type places struct {
	Begin  Position
	values map[string]Position
}

// read reports whether the mapping stood in the file.
func (p places) read() bool { return p.Begin.Line > 0 }

// has reports whether a key stood in the mapping, with or without a value.
func (p places) has(key string) bool { _, there := p.values[key]; return there }

// of is the place of the first of the keys that stand in the mapping, else of
// the mapping.
func (p places) of(keys ...string) Position {
	for _, key := range keys {
		if at, there := p.values[key]; there {
			return at
		}
	}
	return p.Begin
}

// decode parses the text and fills the target struct.
func (d *decoder) decode(text string, target any) {
	if len(text) > largestFile {
		d.fault(Position{1, 1}, "the file has %d bytes; a campaign file has at most %d", len(text), largestFile)
		return
	}
	if at, deep := tooDeep(d.source.lines); deep {
		d.fault(at, "more than %d lists or mappings within each other; a campaign file needs a few", deepestNesting)
		return
	}
	file, err := parse(text)
	if err != nil {
		d.syntax(err)
		return
	}
	var bodies []ast.Node
	for _, document := range file.Docs {
		switch document.Body.(type) {
		case nil, *ast.DirectiveNode, *ast.CommentGroupNode:
		default:
			bodies = append(bodies, document.Body)
		}
	}
	switch len(bodies) {
	case 0:
		d.fault(Position{1, 1}, "the file is empty; `nocturne init` writes one to begin with")
	case 1:
		d.value(bodies[0], reflect.ValueOf(target).Elem())
	default:
		d.fault(d.position(bodies[1]), "a second YAML document begins here; a campaign file holds one")
	}
}

// position is where a node begins. A mapping's own token is the colon after its
// first key, so the key is asked instead.
func (d *decoder) position(node ast.Node) Position {
	if d.at != nil {
		return *d.at
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 && n.Start.Type != token.MappingStartType {
			return d.position(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return d.position(n.Key)
	}
	at := node.GetToken().Position
	return Position{at.Line, max(at.Column, 1)}
}

// pairsOf lists the entries of a mapping.
func pairsOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// simple refuses what campaign files do without.
func (d *decoder) simple(node ast.Node) bool {
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		d.fault(d.position(node), "YAML anchors, aliases and merge keys are not supported; use `vars` and ${name}")
	case *ast.TagNode:
		d.fault(d.position(node), "YAML tags are not supported; quote a value to make it text")
	case *ast.MappingKeyNode:
		d.fault(d.position(node), "keys that begin with ? are not supported; write key: value")
	default:
		return true
	}
	return false
}

func isNull(node ast.Node) bool {
	_, null := node.(*ast.NullNode)
	return null || node == nil
}

var (
	readerType = reflect.TypeFor[nodeReader]()
	placesType = reflect.TypeFor[places]()
	scalarType = reflect.TypeFor[scalar]()
)

// value decodes a node into a settable value.
func (d *decoder) value(node ast.Node, into reflect.Value) {
	if !d.simple(node) {
		return
	}
	if into.Kind() == reflect.Pointer && into.Type().Implements(readerType) {
		made := reflect.New(into.Type().Elem())
		made.Interface().(nodeReader).readNode(d, node)
		if !made.Elem().IsZero() { // zero: it could not be read, which has been told
			into.Set(made)
		}
		return
	}
	if into.CanAddr() && into.Addr().Type().Implements(readerType) {
		into.Addr().Interface().(nodeReader).readNode(d, node)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(node, into.Elem())
	case reflect.Struct:
		d.mapping(node, into)
	case reflect.Slice:
		d.sequence(node, into)
	case reflect.Bool:
		d.truth(node, into)
	default:
		panic(fmt.Sprintf("spec: no decoder for %s", into.Type()))
	}
}

// mapping decodes into a struct whose fields carry yaml tags.
func (d *decoder) mapping(node ast.Node, into reflect.Value) {
	pairs, ok := pairsOf(node)
	if !ok {
		d.fault(d.position(node), "%s: want a mapping with the keys %s", excerpt(node), strings.Join(keysOf(into.Type()), ", "))
		return
	}
	where := places{Begin: d.position(node), values: map[string]Position{}}
	seen := map[string]Position{}
	for _, pair := range pairs {
		key, ok := d.key(pair, seen)
		if !ok {
			continue
		}
		field, known := fieldOf(into, key.Text)
		if known {
			where.values[key.Text] = d.position(pair.Value)
		}
		switch {
		case !known:
			d.unknownKey(key, into, where)
		case isNull(pair.Value):
			d.fault(key.Position, "key %q has no value; remove the key, or give it one", key.Text)
		default:
			d.value(pair.Value, field)
		}
	}
	if field := into.FieldByName("Where"); field.IsValid() && field.Type() == placesType {
		field.Set(reflect.ValueOf(where))
	}
}

// later is implemented by mappings with keys that a later version carries out.
type later interface{ later() []string }

// unknownKey refuses a key. The one that it resembles counts as there, so that
// it is not told to be missing as well.
func (d *decoder) unknownKey(key scalar, into reflect.Value, where places) {
	if of, ok := into.Interface().(later); ok && slices.Contains(of.later(), key.Text) {
		d.fault(key.Position, "this version does not carry out %q; remove it", key.Text)
		return
	}
	known := keysOf(into.Type())
	d.fault(key.Position, "unknown key %q: %s", key.Text, suggestion(key.Text, known))
	if near, ok := nearest(key.Text, known); ok && !where.has(near) {
		where.values[near] = key.Position
	}
}

// key reads the key of a pair and refuses it the second time.
func (d *decoder) key(pair *ast.MappingValueNode, seen map[string]Position) (scalar, bool) {
	key, ok := d.scalar(pair.Key)
	if !ok {
		return key, false
	}
	if first, twice := seen[key.Text]; twice {
		d.fault(key.Position, "key %q stands here a second time; the first is at %d:%d", key.Text, first.Line, first.Column)
		return key, false
	}
	seen[key.Text] = key.Position
	return key, true
}

func (d *decoder) sequence(node ast.Node, into reflect.Value) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		d.fault(d.position(node), "%s: want a list, such as [a, b]", excerpt(node))
		return
	}
	items := reflect.MakeSlice(into.Type(), 0, len(list.Values))
	for _, item := range list.Values {
		if isNull(item) && into.Type().Elem() != scalarType {
			d.fault(d.position(item), "an empty item in a list; remove it, or give it a value")
			continue
		}
		made := reflect.New(into.Type().Elem()).Elem()
		d.value(item, made)
		if !made.IsZero() { // zero: it could not be read, which has been told
			items = reflect.Append(items, made)
		}
	}
	into.Set(items)
}

// truth decodes true or false.
func (d *decoder) truth(node ast.Node, into reflect.Value) {
	read, ok := d.scalar(node)
	if !ok {
		return
	}
	if read.quoted() || (read.Text != "true" && read.Text != "false") {
		d.fault(read.Position, "%q: want true or false", read.Text)
		return
	}
	into.SetBool(read.Text == "true")
}

// scalar reads a node that must be a single value.
func (d *decoder) scalar(node ast.Node) (scalar, bool) {
	if !d.simple(node) {
		return scalar{}, false
	}
	at := d.position(node)
	switch n := node.(type) {
	case *ast.LiteralNode:
		style := literalBlock
		if n.Start.Type == token.FoldedType {
			style = foldedBlock
		}
		return scalar{Text: n.Value.Value, style: style, Position: at}, true
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		style := plain
		switch node.GetToken().Type {
		case token.SingleQuoteType:
			style = singleQuoted
		case token.DoubleQuoteType:
			style = doubleQuoted
		}
		return scalar{Text: node.GetToken().Value, style: style, Position: at}, true
	case *ast.NullNode:
		return scalar{Text: "null", style: null, Position: at}, true
	}
	d.fault(at, "%s: want a single value; JSON is written in quotes, such as '{\"a\":1}'", excerpt(node))
	return scalar{}, false
}

// fieldOf finds the field of a struct by its yaml tag.
func fieldOf(value reflect.Value, key string) (reflect.Value, bool) {
	for i := range value.NumField() {
		if value.Type().Field(i).Tag.Get("yaml") == key && key != "" && key != "-" {
			return value.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func keysOf(of reflect.Type) []string {
	var keys []string
	for i := range of.NumField() {
		if tag := of.Field(i).Tag.Get("yaml"); tag != "" && tag != "-" {
			keys = append(keys, tag)
		}
	}
	return keys
}

// excerpt is the beginning of a node's text for a message.
func excerpt(node ast.Node) string {
	return strconv.Quote(excerptText(strings.Join(strings.Fields(node.String()), " ")))
}
