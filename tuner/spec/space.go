package spec

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"nocturne/search"
)

// buildSpace gathers the knobs and constraints. With faults it builds what it
// can of the space, so that what speaks of it is checked as well.
func (r *resolver) buildSpace() {
	file := r.file.Space
	if !file.Where.read() {
		return
	}
	r.envKnobs(file.Env.section)
	r.flagKnobs(file.Flags.section)
	r.groupKnobs(file.Groups.section)
	r.speculativeKnobs()
	r.readConditions()
	if len(r.knobs) == 0 {
		if len(r.faults) == 0 {
			r.fault(file.Where.Begin, "space has no knobs: there is nothing to search; want one of preset, env, flags, groups and speculative")
		}
		return
	}
	constraints := r.constraints(file.Constraints)
	space, err := search.NewSpace(r.knobs, constraints, canonicalizer(r.launch.env, r.bindings, r.facts))
	for _, fault := range find[*search.KnobError](err) {
		at := file.Where.Begin
		if bound, known := r.bindings[fault.Knob]; known {
			at = bound.at
		}
		r.fault(at, "%s %s", fault.Knob, fault.Reason)
	}
	if err != nil {
		if len(r.faults) == 0 {
			r.fault(file.Where.Begin, "space: %v", err)
		}
		return
	}
	r.space = space
	r.checkSpace()
}

// find lists the errors of one type in a tree of joined and wrapped errors.
func find[E error](err error) []E {
	if err == nil {
		return nil
	}
	if one, ok := err.(E); ok { //nolint:errorlint // the tree is walked here
		return []E{one}
	}
	var found []E
	switch inner := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() []error }:
		for _, part := range inner.Unwrap() {
			found = append(found, find[E](part)...)
		}
	case interface{ Unwrap() error }:
		found = find[E](inner.Unwrap())
	}
	return found
}

// constraints parses the constraints. One that speaks of a knob at fault cannot
// be judged.
func (r *resolver) constraints(file []scalar) []search.Constraint {
	var constraints []search.Constraint
	for _, written := range file {
		if written.style == null || strings.TrimSpace(written.Text) == "" {
			r.fault(written.Position, "an empty constraint; remove it")
			continue
		}
		constraint, err := search.ParseConstraint(written.Text, r.knobs)
		if err == nil {
			constraints = append(constraints, constraint)
			continue
		}
		if !r.mentionsFaulty(written.Text) {
			r.constraintFault(written, err)
		}
	}
	return constraints
}

func (r *resolver) mentionsFaulty(constraint string) bool {
	for id := range r.faulty {
		if strings.Contains(constraint, id) {
			return true
		}
	}
	return false
}

func (r *resolver) constraintFault(written scalar, err error) {
	var inside *search.ConstraintError
	if !errors.As(err, &inside) {
		r.fault(written.Position, "constraint: %v", err)
		return
	}
	at := r.source.inside(written, byteOfRune(written.Text, inside.Column-1))
	message := inside.Message
	if inside.Nearest != "" {
		message += "; did you mean " + inside.Nearest + "?"
	}
	if strings.Contains(written.Text, "${") {
		message += "; placeholders are not filled in constraints"
	}
	r.fault(at, "constraint %q: %s", excerptText(written.Text), message)
}

// byteOfRune is the offset of the n-th character.
func byteOfRune(text string, n int) int {
	return len(text) - len(skipRunes(text, max(n, 0)))
}

// mostConstraintTime bounds the search for a configuration that the constraints
// allow. What is not decided by then passes: it is no proof of a fault.
const mostConstraintTime = 5 * time.Second

// checkSpace refuses a space in which nothing, or not the baseline, is legal.
func (r *resolver) checkSpace() {
	rejections := find[*search.RejectedError](r.space.Check(r.space.Default()))
	if len(rejections) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), mostConstraintTime)
	defer cancel()
	_, possible := r.space.AnyLegal(ctx)
	possible = possible || ctx.Err() != nil
	for _, rejected := range rejections {
		at := r.constraintPlace(rejected.Constraint)
		if possible {
			r.fault(at, "constraint %q rejects the baseline (%s), in which every knob is at its default; loosen it, or declare other defaults", excerptText(rejected.Constraint), rejected.Values)
		} else {
			r.fault(at, "constraint %q rejects the baseline (%s), and the constraints together exclude every configuration", excerptText(rejected.Constraint), rejected.Values)
		}
	}
}

func (r *resolver) constraintPlace(source string) Position {
	file := r.file.Space
	i := slices.IndexFunc(file.Constraints, func(written scalar) bool { return written.Text == source })
	if i < 0 {
		return file.Where.of("constraints")
	}
	return file.Constraints[i].Position
}
