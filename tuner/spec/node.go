package spec

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The decoder turns YAML into the typed file and gathers every fault with its
// position instead of stopping at the first. Scalars keep their source text:
// what a value means is decided by the knob it belongs to, not by YAML.

// decoder reads one file.
type decoder struct {
	*collector
}

// nodeReader is a field type that reads its own node.
type nodeReader interface {
	readNode(d *decoder, node ast.Node)
}

// decodeFile parses the text and fills the target struct.
func decodeFile(c *collector, text []byte, target any) {
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		c.syntax(err)
		return
	}
	var bodies []ast.Node
	for _, document := range file.Docs {
		if document.Body != nil {
			bodies = append(bodies, document.Body)
		}
	}
	switch len(bodies) {
	case 0:
		c.fault(Position{1, 1}, "the file is empty; `nocturne init` writes one to begin with")
	case 1:
		d := &decoder{c}
		d.value(bodies[0], reflect.ValueOf(target).Elem())
	default:
		c.fault(positionOf(bodies[1]), "a second YAML document begins here; a campaign file holds one")
	}
}

func (c *collector) syntax(err error) {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		c.fault(Position{syntax.Token.Position.Line, max(syntax.Token.Position.Column, 1)}, "not valid YAML: %s", syntax.Message)
		return
	}
	c.fault(Position{1, 1}, "not valid YAML: %v", err)
}

// positionOf is where a node begins. A mapping's own token is the colon after
// its first key, so the key is asked instead.
func positionOf(node ast.Node) Position {
	switch n := node.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 && n.Start.Type != token.MappingStartType {
			return positionOf(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return positionOf(n.Key)
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

// plain refuses what campaign files do without.
func (d *decoder) plain(node ast.Node) bool {
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		d.fault(positionOf(node), "YAML anchors, aliases and merge keys are not supported; use `vars` and ${name}")
		return false
	case *ast.TagNode:
		d.fault(positionOf(node), "YAML tags are not supported; quote the value to make it text")
		return false
	}
	return true
}

func isNull(node ast.Node) bool {
	_, null := node.(*ast.NullNode)
	return null || node == nil
}

var readerType = reflect.TypeFor[nodeReader]()

// value decodes a node into a settable value.
func (d *decoder) value(node ast.Node, into reflect.Value) {
	if !d.plain(node) {
		return
	}
	if into.Kind() == reflect.Pointer && into.Type().Implements(readerType) {
		into.Set(reflect.New(into.Type().Elem()))
		into.Interface().(nodeReader).readNode(d, node)
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
	case reflect.String, reflect.Bool, reflect.Int, reflect.Float64:
		d.scalarInto(node, into)
	default:
		panic(fmt.Sprintf("spec: no decoder for %s", into.Type()))
	}
}

// mapping decodes into a struct whose fields carry yaml tags.
func (d *decoder) mapping(node ast.Node, into reflect.Value) {
	pairs, ok := pairsOf(node)
	if !ok {
		d.fault(positionOf(node), "%s: want a mapping with the keys %s", excerpt(node), strings.Join(keysOf(into.Type()), ", "))
		return
	}
	seen := map[string]Position{}
	for _, pair := range pairs {
		key, at, ok := d.key(pair, seen)
		if !ok {
			continue
		}
		field, known := fieldOf(into, key)
		if !known {
			d.fault(at, "unknown key %q: %s", key, suggestion(key, keysOf(into.Type())))
			continue
		}
		if positions := into.FieldByName("At"); positions.IsValid() && positions.Type() == reflect.TypeFor[placeMap]() {
			if positions.IsNil() {
				positions.Set(reflect.ValueOf(placeMap{}))
			}
			positions.Interface().(placeMap)[key] = positionOf(pair.Value)
		}
		if isNull(pair.Value) {
			d.fault(at, "key %q has no value; remove the key, or give it one", key)
			continue
		}
		d.value(pair.Value, field)
	}
	if begin := into.FieldByName("Begin"); begin.IsValid() && begin.Type() == reflect.TypeFor[Position]() {
		begin.Set(reflect.ValueOf(positionOf(node)))
	}
}

// placeMap remembers where the values of a mapping's keys stand.
type placeMap map[string]Position

// key reads the key of a pair and refuses it the second time.
func (d *decoder) key(pair *ast.MappingValueNode, seen map[string]Position) (string, Position, bool) {
	at := positionOf(pair.Key)
	if _, merge := pair.Key.(*ast.MergeKeyNode); merge {
		d.plain(pair.Key.(ast.Node))
		return "", at, false
	}
	key := pair.Key.GetToken().Value
	if first, twice := seen[key]; twice {
		d.fault(at, "key %q stands here a second time; the first is at %d:%d", key, first.Line, first.Column)
		return "", at, false
	}
	seen[key] = at
	return key, at, true
}

func (d *decoder) sequence(node ast.Node, into reflect.Value) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		d.fault(positionOf(node), "%s: want a list, such as [a, b]", excerpt(node))
		return
	}
	items := reflect.MakeSlice(into.Type(), len(list.Values), len(list.Values))
	for i, item := range list.Values {
		if isNull(item) && into.Type().Elem() != reflect.TypeFor[Scalar]() {
			d.fault(positionOf(item), "an empty item in a list")
			continue
		}
		d.value(item, items.Index(i))
	}
	into.Set(items)
}

func (d *decoder) scalarInto(node ast.Node, into reflect.Value) {
	scalar, ok := d.scalar(node)
	if !ok {
		return
	}
	switch into.Kind() {
	case reflect.String:
		if scalar.ambiguous(d) {
			return
		}
		into.SetString(scalar.Text)
	case reflect.Bool:
		if scalar.Quoted || (scalar.Text != "true" && scalar.Text != "false") {
			d.fault(scalar.Position, "%q: want true or false", scalar.Text)
			return
		}
		into.SetBool(scalar.Text == "true")
	case reflect.Int:
		number, err := strconv.Atoi(scalar.Text)
		if err != nil || scalar.Quoted || scalar.leadingZero() {
			d.fault(scalar.Position, "%q: want a whole number in decimal digits", scalar.Text)
			return
		}
		into.SetInt(int64(number))
	case reflect.Float64:
		number, err := scalar.float()
		if err != nil {
			d.fault(scalar.Position, "%v", err)
			return
		}
		into.SetFloat(number)
	}
}

// scalar reads a node that must be a single value.
func (d *decoder) scalar(node ast.Node) (Scalar, bool) {
	if !d.plain(node) {
		return Scalar{}, false
	}
	at := positionOf(node)
	switch n := node.(type) {
	case *ast.LiteralNode:
		return Scalar{Text: n.Value.Value, Quoted: true, Position: at}, true
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		kind := node.GetToken().Type
		quoted := kind == token.SingleQuoteType || kind == token.DoubleQuoteType
		return Scalar{Text: node.GetToken().Value, Quoted: quoted, Position: at}, true
	case *ast.NullNode:
		return Scalar{Text: "null", Null: true, Position: at}, true
	}
	d.fault(at, "%s: want a single value", excerpt(node))
	return Scalar{}, false
}

// excerpt is the beginning of a node's text for a message.
func excerpt(node ast.Node) string {
	text := strings.Join(strings.Fields(node.String()), " ")
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	return strconv.Quote(text)
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
