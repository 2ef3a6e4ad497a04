// Package recipes holds configurations that others have published for kinds of
// machines: where each applies, its values, and its source. A search tries those
// that fit among its first trials. They are files, one a recipe, in the order in
// which they are tried.
package recipes

import (
	"embed"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"

	"nocturne/nccl"
	"nocturne/search"
)

//go:embed files/*.yaml
var files embed.FS

// Recipe is a published configuration.
type Recipe struct {
	Name string `yaml:"name"`
	// Title says in words where the recipe applies.
	Title  string `yaml:"title"`
	Source Source `yaml:"source"`
	When   When   `yaml:"when"`
	// Values make the recipe, by the ids of knobs: without one of them it is
	// another. Also holds values that belong to it and that it can do without.
	Values map[string]Setting `yaml:"values"`
	Also   map[string]Setting `yaml:"also"`
}

// Source is where a recipe was published: a page, or a section of the project's
// own documentation.
type Source struct {
	Title string `yaml:"title"`
	URL   string `yaml:"url"`
}

// When says where a recipe applies. What is left out does not matter; what is
// not known of a machine does not fit.
type When struct {
	GPUs        Range    `yaml:"gpus"`
	NVLink      *bool    `yaml:"nvlink"` // true: between all pairs of GPUs, false: between none
	Sockets     Range    `yaml:"sockets"`
	Concurrency Range    `yaml:"concurrency"` // of the objective's load point
	Servers     []string `yaml:"servers"`     // kinds of servers
	Methods     []string `yaml:"methods"`     // of speculation
}

// Range is a span of numbers, both ends included; 0 is no bound.
type Range struct {
	Min int `yaml:"min"`
	Max int `yaml:"max"`
}

func (r Range) holds(number int) bool {
	if r == (Range{}) {
		return true
	}
	return number > 0 && number >= r.Min && (r.Max == 0 || number <= r.Max)
}

// Place is what a recipe may apply to; zero fields are not known.
type Place struct {
	GPUs        int
	NVLink      nccl.Tri
	Sockets     int
	Concurrency int
	Server      string
	Method      string
}

// Fits reports whether the recipe applies.
func (r *Recipe) Fits(place Place) bool {
	links := r.When.NVLink == nil || *r.When.NVLink && place.NVLink == nccl.Yes || !*r.When.NVLink && place.NVLink == nccl.No
	return links && r.When.GPUs.holds(place.GPUs) && r.When.Sockets.holds(place.Sockets) && r.When.Concurrency.holds(place.Concurrency) &&
		among(r.When.Servers, place.Server) && among(r.When.Methods, place.Method)
}

func among(words []string, word string) bool { return len(words) == 0 || slices.Contains(words, word) }

// Setting is a value of a knob as YAML has it.
type Setting struct{ search.Value }

// UnmarshalYAML takes whole numbers, truth values of switches and texts.
func (s *Setting) UnmarshalYAML(text []byte) error {
	var plain any
	if err := yaml.Unmarshal(text, &plain); err != nil {
		return err
	}
	switch value := plain.(type) {
	case uint64:
		s.Value = search.Int(int64(value))
	case bool:
		s.Value = search.Bool(value)
	case string:
		s.Value = search.Text(value)
	default:
		return fmt.Errorf("%s is no whole number, truth value or text", text)
	}
	return nil
}

// All returns the recipes in the order in which they are tried.
func All() []Recipe {
	entries, err := files.ReadDir("files")
	if err != nil {
		panic("recipes: embedded files: " + err.Error())
	}
	recipes := make([]Recipe, len(entries))
	for i, entry := range entries {
		text, err := files.ReadFile("files/" + entry.Name())
		if err == nil {
			err = yaml.UnmarshalWithOptions(text, &recipes[i], yaml.Strict())
		}
		if err != nil {
			panic("recipes: embedded file " + entry.Name() + ": " + err.Error())
		}
	}
	return recipes
}
