package local

import (
	"encoding/json"
	"strconv"
	"strings"
)

// valueAt follows a dotted path through decoded JSON; numbers are indices of
// arrays.
func valueAt(document any, path string) (any, bool) {
	if path == "" {
		return nil, false
	}
	for step := range strings.SplitSeq(path, ".") {
		switch node := document.(type) {
		case map[string]any:
			next, ok := node[step]
			if !ok {
				return nil, false
			}
			document = next
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil || index < 0 || index >= len(node) {
				return nil, false
			}
			document = node[index]
		default:
			return nil, false
		}
	}
	return document, true
}

// textAt is a scalar at a dotted path as text.
func textAt(document any, path string) (string, bool) {
	value, ok := valueAt(document, path)
	if !ok {
		return "", false
	}
	switch scalar := value.(type) {
	case string:
		return scalar, true
	case json.Number:
		return scalar.String(), true
	case bool:
		return strconv.FormatBool(scalar), true
	}
	return "", false
}
