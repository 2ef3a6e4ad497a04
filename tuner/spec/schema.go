package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Schema is the JSON schema of the campaign file, generated from its types.
func Schema() ([]byte, error) {
	schema := newReflector().Reflect(&fileRoot{})
	schema.ID = "https://nocturne.invalid/schema/campaign.json"
	schema.Title = "Nocturne campaign file"
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of the campaign file: %w", err)
	}
	return append(text, '\n'), nil
}

// Key is one key of the campaign file with its description, for the reference.
type Key struct {
	Path        string
	Description string
	Required    bool
}

// Keys lists every key of the campaign file in the order of its types.
func Keys() []Key { return keysIn("", reflect.TypeFor[fileRoot](), map[reflect.Type]bool{}) }

func keysIn(prefix string, of reflect.Type, above map[reflect.Type]bool) []Key {
	var keys []Key
	if above[of] {
		return nil
	}
	above[of] = true
	defer delete(above, of)
	for i := range of.NumField() {
		field := of.Field(i)
		name := field.Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		path := prefix + name
		keys = append(keys, Key{Path: path, Description: field.Tag.Get("jsonschema_description"), Required: strings.Contains(field.Tag.Get("jsonschema"), "required")})
		inner, suffix := innerType(field.Type)
		if inner != nil {
			keys = append(keys, keysIn(path+suffix+".", inner, above)...)
		}
	}
	return keys
}

// innerType is the struct that a key's value is decoded into, if any, with
// what stands between: names that people choose are <name>.
func innerType(of reflect.Type) (reflect.Type, string) {
	switch of {
	case reflect.TypeFor[*fileConfirm]():
		return reflect.TypeFor[fileConfirmation](), ""
	case reflect.TypeFor[*levelList](), reflect.TypeFor[*fileExpect](), reflect.TypeFor[Section[environment]]():
		return nil, ""
	}
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
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
