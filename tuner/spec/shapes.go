package spec

import (
	"reflect"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// The types of this file are values that can be written in more than one
// shape.

// gpuSelection is all, or a list of indices.
type gpuSelection struct {
	All     bool
	Indices []int
}

func (g *gpuSelection) readNode(d *decoder, node ast.Node) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		read, ok := d.scalar(node)
		if ok && read.Text != "all" {
			d.fault(read.Position, "gpus: %q: want all, or a list of indices such as [0, 1]", read.Text)
		}
		g.All = true
		return
	}
	for _, item := range list.Values {
		read, ok := d.scalar(item)
		if !ok {
			continue
		}
		index, err := read.whole()
		if err != nil || index < 0 || slices.Contains(g.Indices, index) {
			d.fault(read.Position, "gpus: %q: want distinct indices from 0, as nvidia-smi counts", read.Text)
			continue
		}
		g.Indices = append(g.Indices, index)
	}
	if len(list.Values) == 0 {
		d.fault(d.position(node), "gpus: the list is empty; write all, or indices such as [0, 1]")
	}
}

// environment is a value, or where a secret is found.
type environment struct {
	Value  scalar
	Secret *fileSecret
}

func (e *environment) readNode(d *decoder, node ast.Node) {
	if _, mapping := pairsOf(node); !mapping {
		e.Value, _ = d.scalar(node)
		return
	}
	e.Secret = &fileSecret{}
	d.mapping(node, reflect.ValueOf(e.Secret).Elem())
	if e.Secret.Where.has("from_env") == e.Secret.Where.has("from_file") {
		d.fault(e.Secret.Where.Begin, "want exactly one of from_env and from_file, which say where the secret is found")
	}
}

// argumentList is the argument vector of a command, or of a bundle.
type argumentList []scalar

func (a *argumentList) readNode(d *decoder, node ast.Node) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		d.fault(d.position(node), "%s: want a list of arguments, such as [serve, --port=${port}]; there is no shell that would split a line", excerpt(node))
		return
	}
	*a = argumentList{}
	for _, item := range list.Values {
		read, ok := d.scalar(item)
		if ok && read.style == null {
			d.fault(read.Position, "an empty argument; write \"\" to mean an empty text, or remove it")
			continue
		}
		if ok && !read.ambiguous(d.collector) {
			*a = append(*a, read)
		}
	}
}

// oneOrMore is one value, or a list of them.
type oneOrMore []scalar

func (o *oneOrMore) readNode(d *decoder, node ast.Node) {
	items := []ast.Node{node}
	if list, ok := node.(*ast.SequenceNode); ok {
		items = list.Values
	}
	for _, item := range items {
		if read, ok := d.scalar(item); ok {
			*o = append(*o, read)
		}
	}
}

// removable is a section in which null removes what a preset set.
type removable[T any] struct {
	section[T]
}

// numberList is one positive number, or several distinct ones.
type numberList struct {
	Numbers []int
	Position
}

// largestConcurrency is the most requests in flight that a file may ask for.
const largestConcurrency = 65536

func (n *numberList) readNode(d *decoder, node ast.Node) {
	n.Position = d.position(node)
	items := []ast.Node{node}
	if list, ok := node.(*ast.SequenceNode); ok {
		items = list.Values
	}
	for _, item := range items {
		read, ok := d.scalar(item)
		if !ok {
			continue
		}
		number, err := read.whole()
		switch {
		case err != nil || number < 1 || number > largestConcurrency:
			d.fault(read.Position, "%q: want a whole number from 1 to %d", read.Text, largestConcurrency)
		case slices.Contains(n.Numbers, number):
			d.fault(read.Position, "%d stands in the list twice", number)
		default:
			n.Numbers = append(n.Numbers, number)
		}
	}
	if len(items) == 0 {
		d.fault(n.Position, "the list is empty; want at least one number")
	}
}

// rateList is one rate above 0, or several distinct ones.
type rateList struct {
	Rates []float64
	Position
}

func (l *rateList) readNode(d *decoder, node ast.Node) {
	l.Position = d.position(node)
	items := []ast.Node{node}
	if list, ok := node.(*ast.SequenceNode); ok {
		items = list.Values
	}
	for _, item := range items {
		read, ok := d.scalar(item)
		if !ok {
			continue
		}
		rate, err := read.float()
		switch {
		case err != nil || rate <= 0:
			d.fault(read.Position, "%q: want a number of requests a second above 0", read.Text)
		case slices.Contains(l.Rates, rate):
			d.fault(read.Position, "%g stands in the list twice", rate)
		default:
			l.Rates = append(l.Rates, rate)
		}
	}
	if len(items) == 0 {
		d.fault(l.Position, "the list is empty; want at least one number")
	}
}

// rounds is auto, or a number.
type rounds struct {
	Auto  bool
	Fixed int
}

func (r *rounds) readNode(d *decoder, node ast.Node) {
	read, ok := d.scalar(node)
	if !ok {
		return
	}
	if r.Auto = read.Text == "auto"; r.Auto {
		return
	}
	number, err := read.whole()
	if err != nil || number < 1 || number > 1000 {
		d.fault(read.Position, "rounds: %q: want auto, or a whole number from 1 to 1000", read.Text)
		return
	}
	r.Fixed = number
}

// levelList is the levels of a knob of speculation: a number, auto, or what a
// knob takes.
type levelList struct {
	Auto bool
	One  *scalar
	Knob *fileKnob
	Position
}

func (l *levelList) readNode(d *decoder, node ast.Node) {
	l.Position = d.position(node)
	if _, mapping := pairsOf(node); mapping {
		l.Knob = &fileKnob{}
		d.mapping(node, reflect.ValueOf(l.Knob).Elem())
		return
	}
	read, ok := d.scalar(node)
	switch {
	case !ok:
	case read.Text == "auto":
		l.Auto = true
	default:
		l.One = &read
	}
}

// fileConfirm is auto, or numbers.
type fileConfirm struct {
	Auto         bool
	Confirmation fileConfirmation
}

type fileConfirmation struct {
	Top        *scalar `yaml:"top" jsonschema_description:"Finalists to relaunch. Default: 1."`
	Relaunches *scalar `yaml:"relaunches" jsonschema_description:"Launches of each finalist and each reference, at least 2. Default: 3."`

	Where places `yaml:"-"`
}

func (c *fileConfirm) readNode(d *decoder, node ast.Node) {
	if _, mapping := pairsOf(node); mapping {
		d.mapping(node, reflect.ValueOf(&c.Confirmation).Elem())
		return
	}
	read, ok := d.scalar(node)
	if ok && read.Text != "auto" {
		d.fault(read.Position, "confirm: %q: want auto, or {top: 3, relaunches: 3}", read.Text)
	}
	c.Auto = true
}

// fileExpect is one metric with its value, and what a shortfall does.
type fileExpect struct {
	Metric      string
	At          Position
	Value       float64
	OnShortfall string
}

func (e *fileExpect) readNode(d *decoder, node ast.Node) {
	var read section[scalar]
	read.readNode(d, node)
	e.OnShortfall = "continue"
	for _, entry := range present(d.collector, read) {
		switch {
		case entry.Key == "on_shortfall":
			if e.OnShortfall = entry.Value.Text; e.OnShortfall != "continue" && e.OnShortfall != "pause" {
				d.fault(entry.Value.Position, "expect.on_shortfall: %q: want continue or pause", e.OnShortfall)
			}
		case e.Metric != "":
			d.fault(entry.At, "expect names one metric, and %s stands there already; remove %s", e.Metric, entry.Key)
		default:
			value, err := entry.Value.float()
			if err != nil {
				d.fault(entry.Value.Position, "expect.%s: %v", entry.Key, err)
			}
			e.Metric, e.At, e.Value = entry.Key, entry.At, value
		}
	}
	if _, mapping := pairsOf(node); mapping && e.Metric == "" {
		d.fault(d.position(node), "expect names no metric; write it with its value, such as output_throughput: 90")
	}
}
