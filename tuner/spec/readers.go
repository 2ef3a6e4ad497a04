package spec

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/invopop/jsonschema"
)

// The types of this file are values that can be written in more than one
// shape.

// gpuSelection is all, or a list of indices.
type gpuSelection struct {
	All     bool
	Indices []int
}

func (g *gpuSelection) readNode(d *decoder, node ast.Node) {
	if list, ok := node.(*ast.SequenceNode); ok {
		d.sequence(list, reflect.ValueOf(&g.Indices).Elem())
		for i, index := range g.Indices {
			if index < 0 || slices.Contains(g.Indices[:i], index) {
				d.fault(positionOf(list.Values[i]), "gpus: %d: want distinct indices from 0", index)
			}
		}
		if len(g.Indices) == 0 {
			d.fault(positionOf(node), "gpus: the list is empty; write all, or indices such as [0, 1]")
		}
		return
	}
	scalar, ok := d.scalar(node)
	if ok && scalar.Text != "all" {
		d.fault(scalar.Position, "gpus: %q: want all, or a list of indices such as [0, 1]", scalar.Text)
	}
	g.All = true
}

// JSONSchema describes both shapes.
func (gpuSelection) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Const: "all"}, {Type: "array", Items: &jsonschema.Schema{Type: "integer"}}}}
}

func (e *environment) readNode(d *decoder, node ast.Node) {
	if _, mapping := pairsOf(node); mapping {
		e.Secret = &fileSecret{}
		d.mapping(node, reflect.ValueOf(e.Secret).Elem())
		if (e.Secret.FromEnv == "") == (e.Secret.FromFile == "") {
			d.fault(positionOf(node), "want exactly one of from_env and from_file")
		}
		return
	}
	e.Value, _ = d.scalar(node)
}

// JSONSchema describes both shapes.
func (environment) JSONSchema() *jsonschema.Schema {
	secret := newReflector().Reflect(&fileSecret{})
	secret.Version = ""
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{scalarSchema(), secret}}
}

func scalarSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
}

// JSONSchema describes any single value.
func (Scalar) JSONSchema() *jsonschema.Schema { return scalarSchema() }

// JSONSchema describes the text of a duration.
func (Duration) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: durationText.String()}
}

// numberList is one positive number, or several distinct ones.
type numberList struct {
	Numbers []int
	List    bool
	Position
}

func (n *numberList) readNode(d *decoder, node ast.Node) {
	n.Position = positionOf(node)
	items := []ast.Node{node}
	if list, ok := node.(*ast.SequenceNode); ok {
		items, n.List = list.Values, true
	}
	for _, item := range items {
		scalar, ok := d.scalar(item)
		if !ok {
			continue
		}
		number, err := strconv.Atoi(scalar.Text)
		if err != nil || number < 1 || scalar.Quoted || slices.Contains(n.Numbers, number) {
			d.fault(scalar.Position, "%q: want distinct whole numbers from 1", scalar.Text)
			continue
		}
		n.Numbers = append(n.Numbers, number)
	}
	if len(items) == 0 {
		d.fault(n.Position, "the list is empty; want at least one number")
	}
}

// JSONSchema describes both shapes.
func (numberList) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "integer"}, {Type: "array", Items: &jsonschema.Schema{Type: "integer"}}}}
}

// rounds is auto (0) or a number.
type rounds struct {
	Fixed int
}

func (r *rounds) readNode(d *decoder, node ast.Node) {
	scalar, ok := d.scalar(node)
	if !ok || scalar.Text == "auto" {
		return
	}
	number, err := strconv.Atoi(scalar.Text)
	if err != nil || number < 1 || number > 1000 {
		d.fault(scalar.Position, "rounds: %q: want auto, or a whole number from 1 to 1000", scalar.Text)
		return
	}
	r.Fixed = number
}

// JSONSchema describes both shapes.
func (rounds) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Const: "auto"}, {Type: "integer"}}}
}

// levelList is the levels of a knob of speculation: a number, auto, or what a
// knob takes.
type levelList struct {
	Auto bool
	One  *Scalar
	Knob *fileKnob
	Position
}

func (l *levelList) readNode(d *decoder, node ast.Node) {
	l.Position = positionOf(node)
	if _, mapping := pairsOf(node); mapping {
		l.Knob = &fileKnob{}
		d.mapping(node, reflect.ValueOf(l.Knob).Elem())
		return
	}
	scalar, ok := d.scalar(node)
	switch {
	case !ok:
	case scalar.Text == "auto":
		l.Auto = true
	default:
		l.One = &scalar
	}
}

// JSONSchema describes the shapes.
func (levelList) JSONSchema() *jsonschema.Schema {
	knob := newReflector().Reflect(&fileKnob{})
	knob.Version = ""
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Const: "auto"}, {Type: "integer"}, knob}}
}

// fileConfirm is auto, or numbers.
type fileConfirm struct {
	Auto         bool
	Confirmation fileConfirmation
	Position
}

type fileConfirmation struct {
	Top        *Scalar `yaml:"top" jsonschema_description:"Finalists to relaunch."`
	Relaunches *Scalar `yaml:"relaunches" jsonschema_description:"Launches of each finalist and each reference, at least 2."`

	Begin Position `yaml:"-"`
}

func (c *fileConfirm) readNode(d *decoder, node ast.Node) {
	c.Position = positionOf(node)
	if _, mapping := pairsOf(node); mapping {
		d.mapping(node, reflect.ValueOf(&c.Confirmation).Elem())
		return
	}
	scalar, ok := d.scalar(node)
	if ok && scalar.Text != "auto" {
		d.fault(scalar.Position, "confirm: %q: want auto, or {top: 3, relaunches: 3}", scalar.Text)
	}
	c.Auto = true
}

// JSONSchema describes both shapes.
func (fileConfirm) JSONSchema() *jsonschema.Schema {
	numbers := newReflector().Reflect(&fileConfirmation{})
	numbers.Version = ""
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Const: "auto"}, numbers}}
}

// fileExpect is one metric with its value, and what a shortfall does.
type fileExpect struct {
	Metric      string
	Value       float64
	OnShortfall string
}

func (e *fileExpect) readNode(d *decoder, node ast.Node) {
	var section Section[Scalar]
	section.readNode(d, node)
	e.OnShortfall = "continue"
	for _, entry := range section.Entries {
		if entry.Key == "on_shortfall" {
			if e.OnShortfall = entry.Value.Text; e.OnShortfall != "continue" && e.OnShortfall != "pause" {
				d.fault(entry.Value.Position, "on_shortfall: %q: want continue or pause", e.OnShortfall)
			}
			continue
		}
		if e.Metric != "" {
			d.fault(entry.At, "expect names one metric, and %q stands there already", e.Metric)
			continue
		}
		value, err := entry.Value.float()
		if err != nil {
			d.fault(entry.Value.Position, "expect: %v", err)
		}
		e.Metric, e.Value = entry.Key, value
	}
}

// JSONSchema describes the mapping.
func (fileExpect) JSONSchema() *jsonschema.Schema {
	properties := jsonschema.NewProperties()
	properties.Set("on_shortfall", &jsonschema.Schema{Enum: []any{"continue", "pause"}, Description: "What a baseline below the expectation does."})
	return &jsonschema.Schema{Type: "object", Properties: properties, AdditionalProperties: &jsonschema.Schema{Type: "number"}}
}
