package search

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// truth is a value of Kleene's three-valued logic.
type truth uint8

const (
	isFalse truth = iota
	isTrue
	isUnknown
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

// condition and term are compiled expressions over the values of the knobs that
// a constraint mentions; a term's ok is false when its value is not known.
type (
	condition func(slots []Value) truth
	term      func(slots []Value) (value Value, ok bool)
)

// kinds is the set of kinds that an expression can have.
type kinds uint8

const (
	mayUnset kinds = 1 << iota
	mayText
	mayNumber
	mayBool
)

func (k kinds) String() string {
	var names []string
	for i, name := range []string{"unset", "a text", "a number", "true or false"} {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

func kindsOf(v Value) kinds {
	switch v.kind {
	case kindText:
		return mayText
	case kindInt, kindFloat:
		return mayNumber
	case kindBool:
		return mayBool
	}
	return mayUnset
}

// operand is a compiled expression: one of term and logic is set.
type operand struct {
	kinds   kinds
	term    term
	logic   condition
	knob    *Knob // when it is a knob and nothing else
	literal Value // when it is a literal
	fixed   bool
}

// condition reads the operand as true or false; an absent switch is false.
func (o operand) condition() condition {
	if o.logic != nil {
		return o.logic
	}
	return func(slots []Value) truth {
		value, ok := o.term(slots)
		if !ok {
			return isUnknown
		}
		return truthOf(value == Bool(true))
	}
}

// value reads the operand as a value.
func (o operand) value() term {
	if o.term != nil {
		return o.term
	}
	return func(slots []Value) (Value, bool) {
		result := o.logic(slots)
		return Bool(result == isTrue), result != isUnknown
	}
}

// compiler turns a syntax tree into a condition.
type compiler struct {
	source   string
	knobs    []Knob
	mentions []string
}

func (c *compiler) fault(node ast.Node, format string, args ...any) *ConstraintError {
	return &ConstraintError{Source: c.source, Column: node.Location().From + 1, Message: fmt.Sprintf(format, args...)}
}

func (c *compiler) compile(node ast.Node) (operand, error) {
	switch node := node.(type) {
	case *ast.IdentifierNode, *ast.MemberNode:
		return c.name(node)
	case *ast.IntegerNode:
		return literalOperand(Int(int64(node.Value))), nil
	case *ast.FloatNode:
		if math.IsNaN(node.Value) || math.IsInf(node.Value, 0) {
			return operand{}, c.fault(node, "number is not finite")
		}
		return literalOperand(Float(node.Value)), nil
	case *ast.StringNode:
		return literalOperand(Text(node.Value)), nil
	case *ast.BoolNode:
		return literalOperand(Bool(node.Value)), nil
	case *ast.UnaryNode:
		return c.unary(node)
	case *ast.BinaryNode:
		return c.binary(node)
	case *ast.NilNode:
		return operand{}, c.fault(node, "nil is not a value, write unset")
	case *ast.CallNode, *ast.BuiltinNode:
		return operand{}, c.fault(node, "calls are not part of the constraint language")
	case *ast.ArrayNode:
		return operand{}, c.fault(node, "a list may only follow in")
	}
	return operand{}, c.fault(node, "this is not part of the constraint language")
}

func literalOperand(value Value) operand {
	return operand{
		kinds:   kindsOf(value),
		term:    func([]Value) (Value, bool) { return value, true },
		literal: value,
		fixed:   true,
	}
}

func (c *compiler) name(node ast.Node) (operand, error) {
	name, ok := dotted(node)
	if !ok {
		return operand{}, c.fault(node, "this is not the name of a knob")
	}
	node = leftmost(node)
	if name == "unset" {
		return literalOperand(Unset), nil
	}
	for i := range c.knobs {
		if c.knobs[i].ID == name {
			return c.reference(&c.knobs[i]), nil
		}
	}
	return operand{}, c.unknownName(node, name)
}

func (c *compiler) reference(knob *Knob) operand {
	slot := slices.Index(c.mentions, knob.ID)
	if slot < 0 {
		slot = len(c.mentions)
		c.mentions = append(c.mentions, knob.ID)
	}
	o := operand{knob: knob, term: func(slots []Value) (Value, bool) { return slots[slot], true }}
	for _, level := range knob.Levels {
		o.kinds |= kindsOf(level)
	}
	if knob.Kind == Switch {
		o.kinds |= mayBool
	}
	return o
}

func (c *compiler) unknownName(node ast.Node, name string) error {
	ids := make([]string, len(c.knobs))
	for i := range c.knobs {
		ids[i] = c.knobs[i].ID
		if slices.Contains(c.knobs[i].Levels, Text(name)) {
			return c.fault(node, "unknown name %s; a text needs quotes: %q", name, name)
		}
	}
	fault := c.fault(node, "unknown name %s", name)
	fault.Nearest = nearestName(name, ids)
	return fault
}

// leftmost is where a.b.c begins; its own location is that of the last dot.
func leftmost(node ast.Node) ast.Node {
	for {
		member, ok := node.(*ast.MemberNode)
		if !ok {
			return node
		}
		node = member.Node
	}
}

// dotted reads a.b.c.
func dotted(node ast.Node) (string, bool) {
	switch node := node.(type) {
	case *ast.IdentifierNode:
		return node.Value, true
	case *ast.MemberNode:
		left, ok := dotted(node.Node)
		property, isText := node.Property.(*ast.StringNode)
		if !ok || !isText || node.Optional || node.Method {
			return "", false
		}
		return left + "." + property.Value, true
	}
	return "", false
}

func (c *compiler) unary(node *ast.UnaryNode) (operand, error) {
	inner, err := c.compile(node.Node)
	if err != nil {
		return operand{}, err
	}
	switch node.Operator {
	case "!", "not":
		if inner.kinds&mayBool == 0 {
			return operand{}, c.fault(node.Node, "%s cannot be negated, want true or false", inner.kinds)
		}
		test := inner.condition()
		return operand{kinds: mayBool, logic: func(slots []Value) truth { return negate(test(slots)) }}, nil
	case "-", "+":
		if inner.kinds&mayNumber == 0 {
			return operand{}, c.fault(node.Node, "%s has no sign, want a number", inner.kinds)
		}
		if inner.fixed {
			return signed(inner.literal, node.Operator), nil
		}
		return c.arithmetic("*", literalOperand(Int(map[string]int64{"-": -1, "+": 1}[node.Operator])), inner), nil
	}
	return operand{}, c.fault(node, "operator %s is not part of the constraint language", node.Operator)
}

func signed(value Value, sign string) operand {
	if sign == "-" {
		if whole, ok := value.Integer(); ok {
			return literalOperand(Int(-whole))
		}
		number, _ := value.Number()
		return literalOperand(Float(-number))
	}
	return literalOperand(value)
}

func negate(t truth) truth {
	switch t {
	case isTrue:
		return isFalse
	case isFalse:
		return isTrue
	}
	return isUnknown
}
