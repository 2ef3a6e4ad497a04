// Package compose checks docker-compose.yml where there is no container engine.
package compose

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// composeFile is what the test asks of the file.
type composeFile struct {
	Services map[string]struct {
		Image       string            `yaml:"image"`
		Environment map[string]string `yaml:"environment"`
		Ports       []string          `yaml:"ports"`
		Volumes     []string          `yaml:"volumes"`
		Healthcheck map[string]any    `yaml:"healthcheck"`
		DependsOn   map[string]struct {
			Condition string `yaml:"condition"`
		} `yaml:"depends_on"`
	} `yaml:"services"`
	Volumes map[string]any `yaml:"volumes"`
}

func readFile(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSchema validates the file against the Compose Specification's schema, as
// in compose-spec/compose-go v2.16.2 (schema/compose-spec.json, Apache-2.0).
func TestSchema(t *testing.T) {
	document, err := yaml.YAMLToJSON(readFile(t))
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile("testdata/compose-spec.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("docker-compose.yml: %v", err)
	}
}

func TestServices(t *testing.T) {
	text := readFile(t)
	var file composeFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	database, nocturne := file.Services["postgres"], file.Services["nocturne"]
	if database.Healthcheck["test"] == nil || nocturne.DependsOn["postgres"].Condition != "service_healthy" {
		t.Error("nocturne does not wait until the database is healthy")
	}
	if len(database.Ports) != 1 || !strings.HasPrefix(database.Ports[0], "127.0.0.1:") {
		t.Errorf("the database listens on %q, want 127.0.0.1 only", database.Ports)
	}
	for name, password := range map[string]string{"POSTGRES_PASSWORD": database.Environment["POSTGRES_PASSWORD"], "PGPASSWORD": nocturne.Environment["PGPASSWORD"]} {
		if !strings.HasPrefix(password, "${NOCTURNE_DB_PASSWORD:?") {
			t.Errorf("%s is %q, want a required variable", name, password)
		}
	}
	volume, _, _ := strings.Cut(strings.Join(database.Volumes, " "), ":")
	if _, declared := file.Volumes[volume]; !declared {
		t.Errorf("the data of the database is in %q, want a named volume", volume)
	}
	if url := nocturne.Environment["NOCTURNE_DB"]; !strings.HasPrefix(url, "postgres://nocturne@postgres:") {
		t.Errorf("nocturne uses %q", url)
	}
}
