package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"nocturne/tuner/screen"
)

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func numberOrDash(value *float64) string {
	if value == nil {
		return "-"
	}
	return screen.Number(*value)
}

func metText(met *bool) string {
	switch {
	case met == nil:
		return "not measured"
	case *met:
		return "met"
	}
	return "not met"
}

// counts lists numbers by name, the total first.
func counts(numbers map[string]int) string {
	var parts []string
	if total, ok := numbers["total"]; ok {
		parts = append(parts, fmt.Sprintf("%d in all", total))
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if name != "total" {
			parts = append(parts, fmt.Sprintf("%d %s", numbers[name], name))
		}
	}
	return strings.Join(parts, ", ")
}
