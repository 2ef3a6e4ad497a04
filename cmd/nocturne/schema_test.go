package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"nocturne/tuner/reference"
)

// schemas compiles the published schemas once.
var schemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	files, err := reference.Files()
	if err != nil {
		return nil, err
	}
	compiled := map[string]*jsonschema.Schema{}
	for path, text := range files {
		name, isSchema := strings.CutPrefix(path, "schema/")
		if !isSchema {
			continue
		}
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(name, document); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if compiled[strings.TrimSuffix(name, ".json")], err = compiler.Compile(name); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return compiled, nil
})

// checkSchema checks an answer against its published schema.
func checkSchema(at, name string, value any) []string {
	all, err := schemas()
	if err != nil {
		return fault(at, "%v", err)
	}
	schema, published := all[name]
	if !published {
		return fault(at, "there is no published schema %q", name)
	}
	if err := schema.Validate(value); err != nil {
		return fault(at, "%v", err)
	}
	return nil
}
