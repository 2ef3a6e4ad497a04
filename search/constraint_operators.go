package search

import (
	"math"
	"slices"

	"github.com/expr-lang/expr/ast"
)

func (c *compiler) binary(node *ast.BinaryNode) (operand, error) {
	if node.Operator == "in" {
		return c.membership(node)
	}
	left, err := c.compile(node.Left)
	if err != nil {
		return operand{}, err
	}
	right, err := c.compile(node.Right)
	if err != nil {
		return operand{}, err
	}
	switch node.Operator {
	case "&&", "and", "||", "or":
		return c.connective(node, left, right)
	case "==", "!=":
		return c.equality(node, left, right)
	case "<", "<=", ">", ">=":
		return c.ordering(node, left, right)
	case "+", "-", "*", "/", "%":
		for _, side := range []struct {
			node ast.Node
			operand
		}{{node.Left, left}, {node.Right, right}} {
			if side.kinds&mayNumber == 0 {
				return operand{}, c.fault(side.node, "%s cannot be used with %s, want a number", side.kinds, node.Operator)
			}
		}
		return c.arithmetic(node.Operator, left, right), nil
	}
	return operand{}, c.fault(node, "operator %s is not part of the constraint language", node.Operator)
}

func (c *compiler) connective(node *ast.BinaryNode, left, right operand) (operand, error) {
	if left.kinds&mayBool == 0 {
		return operand{}, c.fault(node.Left, "%s beside %s, want true or false", left.kinds, node.Operator)
	}
	if right.kinds&mayBool == 0 {
		return operand{}, c.fault(node.Right, "%s beside %s, want true or false", right.kinds, node.Operator)
	}
	a, b := left.condition(), right.condition()
	// The value that decides the result whatever the other side is.
	decisive := isFalse
	if node.Operator == "||" || node.Operator == "or" {
		decisive = isTrue
	}
	return operand{kinds: mayBool, logic: func(slots []Value) truth {
		x, y := a(slots), b(slots)
		switch {
		case x == decisive || y == decisive:
			return decisive
		case x == isUnknown || y == isUnknown:
			return isUnknown
		}
		return negate(decisive)
	}}, nil
}

func (c *compiler) equality(node *ast.BinaryNode, left, right operand) (operand, error) {
	if err := c.comparable(node, left, right); err != nil {
		return operand{}, err
	}
	a, b := left.value(), right.value()
	if isSwitch(left) && right.kinds&mayBool != 0 {
		a = presence(a)
	}
	if isSwitch(right) && left.kinds&mayBool != 0 {
		b = presence(b)
	}
	wanted := node.Operator == "=="
	return operand{kinds: mayBool, logic: func(slots []Value) truth {
		x, xKnown := a(slots)
		y, yKnown := b(slots)
		if !xKnown || !yKnown {
			return isUnknown
		}
		return truthOf((x == y) == wanted)
	}}, nil
}

// comparable refuses a comparison that can never hold; unset is comparable with
// every knob, since a preset's rule must survive a narrower list of levels.
func (c *compiler) comparable(node ast.Node, left, right operand) error {
	if left.kinds&right.kinds != 0 {
		return nil
	}
	if (left.knob != nil && right.kinds == mayUnset) || (right.knob != nil && left.kinds == mayUnset) {
		return nil
	}
	return c.fault(node, "%s never equals %s", left.kinds, right.kinds)
}

func isSwitch(o operand) bool { return o.knob != nil && o.knob.Kind == Switch }

// presence reads an absent switch as false.
func presence(read term) term {
	return func(slots []Value) (Value, bool) {
		value, ok := read(slots)
		return Bool(value == Bool(true)), ok
	}
}

func (c *compiler) ordering(node *ast.BinaryNode, left, right operand) (operand, error) {
	left, right = byPosition(left, right)
	right, left = byPosition(right, left)
	if left.kinds&mayNumber == 0 || right.kinds&mayNumber == 0 {
		return operand{}, c.fault(node, "%s and %s have no order, want numbers (or a level of an ordinal knob)", left.kinds, right.kinds)
	}
	a, b := left.value(), right.value()
	if node.Operator == ">" || node.Operator == "<=" {
		a, b = b, a
	}
	strict := node.Operator == "<" || node.Operator == ">"
	return operand{kinds: mayBool, logic: func(slots []Value) truth {
		x, xKnown := a(slots)
		y, yKnown := b(slots)
		less, numbers := x.less(y)
		if !xKnown || !yKnown || !numbers {
			return isUnknown
		}
		// a <= b is !(b < a): the operands were swapped for it.
		return truthOf(less == strict)
	}}, nil
}

// byPosition turns a knob with ordered texts and one of its levels into
// numbers.
func byPosition(knob, level operand) (operand, operand) {
	if knob.knob == nil || knob.knob.Kind != Ordinal || !level.fixed || level.literal.kind != kindText {
		return knob, level
	}
	levels := knob.knob.Levels
	position := slices.Index(levels, level.literal)
	if position < 0 {
		return knob, level
	}
	read := knob.term
	return operand{kinds: mayNumber, term: func(slots []Value) (Value, bool) {
		value, ok := read(slots)
		if value.IsUnset() {
			return Unset, ok
		}
		return Int(int64(slices.Index(levels, value))), ok
	}}, literalOperand(Int(int64(position)))
}

func (c *compiler) arithmetic(operator string, left, right operand) operand {
	a, b := left.value(), right.value()
	return operand{kinds: mayNumber, term: func(slots []Value) (Value, bool) {
		x, xKnown := a(slots)
		y, yKnown := b(slots)
		p, pNumber := x.Number()
		q, qNumber := y.Number()
		if !xKnown || !yKnown || !pNumber || !qNumber {
			return Unset, false
		}
		result := calculate(operator, p, q)
		if math.IsNaN(result) || math.IsInf(result, 0) {
			return Unset, false
		}
		return Float(result), true
	}}
}

func calculate(operator string, p, q float64) float64 {
	switch operator {
	case "+":
		return p + q
	case "-":
		return p - q
	case "*":
		return p * q
	case "/":
		return p / q
	}
	return math.Mod(p, q)
}

// membership compiles x in [1, 2] and x in 1..4.
func (c *compiler) membership(node *ast.BinaryNode) (operand, error) {
	left, err := c.compile(node.Left)
	if err != nil {
		return operand{}, err
	}
	if bounds, ok := node.Right.(*ast.BinaryNode); ok && bounds.Operator == ".." {
		low := &ast.BinaryNode{Operator: ">=", Left: node.Left, Right: bounds.Left}
		high := &ast.BinaryNode{Operator: "<=", Left: node.Left, Right: bounds.Right}
		both := &ast.BinaryNode{Operator: "&&", Left: low, Right: high}
		for _, made := range []ast.Node{low, high, both} {
			made.SetLocation(node.Location())
		}
		return c.binary(both)
	}
	list, ok := node.Right.(*ast.ArrayNode)
	if !ok {
		return operand{}, c.fault(node.Right, "want a list such as [1, 2] or a range such as 1..4 after in")
	}
	if len(list.Nodes) == 0 {
		return operand{}, c.fault(list, "the list after in is empty")
	}
	tests := make([]condition, len(list.Nodes))
	for i, element := range list.Nodes {
		right, err := c.compile(element)
		if err != nil {
			return operand{}, err
		}
		equal := &ast.BinaryNode{Operator: "==", Left: node.Left, Right: element}
		equal.SetLocation(element.Location())
		test, err := c.equality(equal, left, right)
		if err != nil {
			return operand{}, err
		}
		tests[i] = test.logic
	}
	return operand{kinds: mayBool, logic: func(slots []Value) truth { return anyOf(tests, slots) }}, nil
}

func anyOf(tests []condition, slots []Value) truth {
	result := isFalse
	for _, test := range tests {
		switch test(slots) {
		case isTrue:
			return isTrue
		case isUnknown:
			result = isUnknown
		}
	}
	return result
}
