package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"nocturne/runners/servers"
	"nocturne/search"
)

// Schema is the JSON schema of the campaign file, generated from its types.
func Schema() ([]byte, error) {
	schema := newReflector().Reflect(&fileRoot{})
	schema.ID = "https://nocturne.invalid/schema/campaign.json"
	schema.Title = "Nocturne campaign file"
	enumerate(schema, append(servers.Names(), KindCommand), "server", "kind")
	enumerate(schema, search.Names(), "search", "sampler")
	enumerate(schema, stops, "search", "stop")
	enumerate(schema, datasets, "workload", "dataset")
	enumerate(schema, endpoints, "workload", "endpoint")
	enumerate(schema, aggregates, "objective", "aggregate")
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of the campaign file: %w", err)
	}
	return append(text, '\n'), nil
}

// enumerate narrows the key at the path to the words that it takes.
func enumerate(schema *jsonschema.Schema, words []string, path ...string) {
	for _, key := range path {
		inner, ok := schema.Properties.Get(key)
		if !ok {
			panic("spec: the schema has no " + strings.Join(path, "."))
		}
		schema = inner
	}
	schema.OneOf, schema.Type = nil, "string"
	for _, word := range words {
		schema.Enum = append(schema.Enum, word)
	}
}

// Key is one key of the campaign file with its description, for the reference.
type Key struct {
	Path        string
	Description string
	Required    bool
}

// Keys lists every key of the campaign file in the order of its types.
func Keys() []Key { return keysIn("", reflect.TypeFor[fileRoot]()) }

func keysIn(prefix string, of reflect.Type) []Key {
	var keys []Key
	for i := range of.NumField() {
		field := of.Field(i)
		name := field.Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		path := prefix + name
		keys = append(keys, Key{Path: path, Description: field.Tag.Get("jsonschema_description"), Required: strings.Contains(field.Tag.Get("jsonschema"), "required")})
		if inner, suffix := innerType(field.Type); inner != nil {
			keys = append(keys, keysIn(path+suffix+".", inner)...)
		}
	}
	return keys
}

// innerType is the struct that a key's value is decoded into, if any, with what
// stands between: names that people choose are <name>.
func innerType(of reflect.Type) (reflect.Type, string) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of {
	case reflect.TypeFor[fileConfirm]():
		return reflect.TypeFor[fileConfirmation](), ""
	case reflect.TypeFor[environment]():
		return reflect.TypeFor[fileSecret](), ""
	}
	if of.Kind() != reflect.Struct {
		return nil, ""
	}
	if entries, ok := of.FieldByName("Entries"); ok {
		value, _ := entries.Type.Elem().FieldByName("Value")
		inner, suffix := innerType(value.Type)
		return inner, ".<name>" + suffix
	}
	if len(keysOf(of)) == 0 {
		return nil, ""
	}
	return of, ""
}

// What follows describes the types that read their own nodes.

func scalarSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
}

// JSONSchema describes any single value.
func (scalar) JSONSchema() *jsonschema.Schema { return scalarSchema() }

// JSONSchema describes text, which need not be quoted where it looks like a
// number.
func (text) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}}}
}

// JSONSchema describes the text of a duration.
func (duration) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: durationText.String()}
}

// JSONSchema describes a section as an object with any keys.
func (section[T]) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: schemaOf[T]()}
}

// JSONSchema describes a section whose values may be null.
func (removable[T]) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{OneOf: []*jsonschema.Schema{schemaOf[T](), {Type: "null"}}}}
}

func schemaOf[T any]() *jsonschema.Schema {
	schema := newReflector().ReflectFromType(reflect.TypeFor[T]())
	schema.Version = ""
	return schema
}

func listOf(items *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: items}
}

func oneOf(shapes ...*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: shapes}
}

// JSONSchema describes both shapes.
func (gpuSelection) JSONSchema() *jsonschema.Schema {
	return oneOf(&jsonschema.Schema{Const: "all"}, listOf(&jsonschema.Schema{Type: "integer"}))
}

// JSONSchema describes both shapes.
func (environment) JSONSchema() *jsonschema.Schema {
	return oneOf(&jsonschema.Schema{Type: "string"}, &jsonschema.Schema{Type: "number"}, schemaOf[fileSecret]())
}

// JSONSchema describes an argument vector.
func (argumentList) JSONSchema() *jsonschema.Schema { return listOf(text{}.JSONSchema()) }

// JSONSchema describes both shapes.
func (oneOrMore) JSONSchema() *jsonschema.Schema {
	return oneOf(&jsonschema.Schema{Type: "string"}, &jsonschema.Schema{Type: "number"}, &jsonschema.Schema{Type: "boolean"}, listOf(scalarSchema()))
}

// JSONSchema describes both shapes.
func (numberList) JSONSchema() *jsonschema.Schema {
	return oneOf(&jsonschema.Schema{Type: "integer"}, listOf(&jsonschema.Schema{Type: "integer"}))
}

// JSONSchema describes both shapes.
func (rateList) JSONSchema() *jsonschema.Schema {
	return oneOf(&jsonschema.Schema{Type: "number"}, listOf(&jsonschema.Schema{Type: "number"}))
}

// JSONSchema describes both shapes.
func (rounds) JSONSchema() *jsonschema.Schema {
	return oneOf(&jsonschema.Schema{Const: "auto"}, &jsonschema.Schema{Type: "integer"})
}

// JSONSchema describes the shapes.
func (levelList) JSONSchema() *jsonschema.Schema {
	return oneOf(&jsonschema.Schema{Const: "auto"}, &jsonschema.Schema{Type: "integer"}, schemaOf[fileKnob]())
}

// JSONSchema describes both shapes.
func (fileConfirm) JSONSchema() *jsonschema.Schema {
	return oneOf(&jsonschema.Schema{Const: "auto"}, schemaOf[fileConfirmation]())
}

// JSONSchema describes the mapping.
func (fileExpect) JSONSchema() *jsonschema.Schema {
	properties := jsonschema.NewProperties()
	properties.Set("on_shortfall", &jsonschema.Schema{Enum: []any{"continue", "pause"}, Description: "What a baseline below the expectation does."})
	return &jsonschema.Schema{Type: "object", Properties: properties, AdditionalProperties: &jsonschema.Schema{Type: "number"}}
}
