package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Info is a page of JSON on which the running server tells of itself.
type Info struct {
	// Paths of the page, the newest first: the first that answers counts.
	Paths []string
	// Version is where the version of the server stands; empty when it does not.
	Version string
	// Effective maps names of facts to where they stand.
	//
	// Places are JSON pointers (RFC 6901), in which "*" stands for every element of
	// an array: the ranks of a data-parallel server each tell their own value.
	Effective map[string]string
	// Live tells that the page changes while the server serves, so that it is worth
	// reading again after a load point. Others are read once: vLLM runs a dozen
	// programs to fill its page.
	Live bool
}

// Null is the value of a fact that the server says it does not have.
const Null = "null"

// Page is what such a page said.
type Page struct {
	Version   string
	Effective map[string]string
	// Document is the whole of it, decoded with json.Number.
	Document any
}

// Read takes in the body of the page. Facts that it does not hold are left out.
func (i Info) Read(body []byte) (Page, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	page := Page{Effective: map[string]string{}}
	if err := decoder.Decode(&page.Document); err != nil {
		return Page{}, fmt.Errorf("page %s is no JSON: %w", i.Paths[0], err)
	}
	page.Version, _ = textAt(page.Document, i.Version)
	for name, pointer := range i.Effective {
		if value, ok := textAt(page.Document, pointer); ok {
			page.Effective[name] = value
		}
	}
	return page, nil
}

// textAt is the scalar at a place as text. Where a "*" finds different values,
// all of them are given, with blanks between them.
func textAt(document any, pointer string) (string, bool) {
	if pointer == "" {
		return "", false
	}
	var texts []string
	for _, value := range valuesAt(document, strings.Split(strings.TrimPrefix(pointer, "/"), "/")) {
		text, ok := scalarText(value)
		if !ok {
			return "", false
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " "), len(texts) > 0
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// valuesAt follows the steps of a pointer; what is not there yields nothing.
func valuesAt(node any, steps []string) []any {
	if len(steps) == 0 {
		return []any{node}
	}
	step, rest := unescape.Replace(steps[0]), steps[1:]
	switch node := node.(type) {
	case nil:
		return []any{nil} // nothing is set below what is not set
	case map[string]any:
		if next, ok := node[step]; ok {
			return valuesAt(next, rest)
		}
	case []any:
		if step == "*" {
			var all []any
			for _, element := range node {
				all = append(all, valuesAt(element, rest)...)
			}
			return all
		}
		if index, err := strconv.Atoi(step); err == nil && index >= 0 && index < len(node) {
			return valuesAt(node[index], rest)
		}
	}
	return nil
}

func scalarText(value any) (string, bool) {
	switch scalar := value.(type) {
	case nil:
		return Null, true
	case string:
		return scalar, true
	case json.Number:
		return scalar.String(), true
	case bool:
		return strconv.FormatBool(scalar), true
	}
	return "", false
}
