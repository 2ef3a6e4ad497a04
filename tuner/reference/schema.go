package reference

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"nocturne/search"
	"nocturne/tuner/output"
)

// Schema is the JSON schema of one document. Fields may be added later, so
// unknown ones are allowed; every field of today is there, absent values as
// null.
func Schema(name string, document any) ([]byte, error) {
	return encode(name, describe(document))
}

// eventSchema is the schema of an event's whole line: the header's fields, then
// the payload's.
func eventSchema(of event) ([]byte, error) {
	line, payload := describe(output.Header{}), describe(of.payload)
	if named, ok := line.Properties.Get("event"); ok {
		named.Const = of.name
	}
	for pair := payload.Properties.Oldest(); pair != nil; pair = pair.Next() {
		if _, taken := line.Properties.Get(pair.Key); taken {
			return nil, fmt.Errorf("event %s: field %s stands in the header already", of.name, pair.Key)
		}
		line.Properties.Set(pair.Key, pair.Value)
	}
	line.Required = append(line.Required, payload.Required...)
	return encode("event-"+of.name, line)
}

func encode(name string, schema *jsonschema.Schema) ([]byte, error) {
	schema.ID = jsonschema.ID("https://nocturne.invalid/schema/" + name + ".json")
	schema.Title = "nocturne " + name
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", name, err)
	}
	return append(text, '\n'), nil
}

func describe(document any) *jsonschema.Schema {
	reflector := &jsonschema.Reflector{Anonymous: true, AllowAdditionalProperties: true, ExpandedStruct: true, DoNotReference: true, Mapper: mapper}
	schema := reflector.Reflect(document)
	nullable(schema, reflect.TypeOf(document))
	return schema
}

// mapper describes types that write their own JSON.
func mapper(of reflect.Type) *jsonschema.Schema {
	switch of {
	case reflect.TypeFor[search.Value]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "null"}, {Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
	case reflect.TypeFor[json.RawMessage]():
		return &jsonschema.Schema{}
	}
	return nil
}

// nullable admits null where the Go type has a pointer, map or slice: absent
// values are null.
func nullable(schema *jsonschema.Schema, of reflect.Type) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Array {
		if of.Kind() != reflect.Pointer {
			if schema.Items == nil {
				return
			}
			schema = schema.Items
		}
		of = of.Elem()
	}
	switch {
	case of.Kind() == reflect.Map && schema.AdditionalProperties != nil:
		nullable(schema.AdditionalProperties, of.Elem())
	case of.Kind() != reflect.Struct || schema.Properties == nil:
		return
	default:
		for i := range of.NumField() {
			nullableField(schema, of.Field(i))
		}
	}
}

func nullableField(schema *jsonschema.Schema, field reflect.StructField) {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if field.Anonymous && name == "" {
		nullable(schema, field.Type)
		return
	}
	property, ok := schema.Properties.Get(name)
	if !ok {
		return
	}
	nullable(property, field.Type)
	switch field.Type.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		schema.Properties.Set(name, &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "null"}, property}})
	}
}
