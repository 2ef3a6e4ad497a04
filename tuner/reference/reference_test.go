package reference_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	yaml "github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/output"
	"nocturne/tuner/reference"
	"nocturne/tuner/spec"
)

var update = flag.Bool("update", false, "write the generated files")

const folder = "../../docs/reference"

func generated(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := reference.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The committed files are what the types say, and there are no others.
func TestCommittedFilesAreCurrent(t *testing.T) {
	files := generated(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, files[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		committed, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(committed, files[name]) {
			t.Errorf("%s is not what the types say; run `go test ./tuner/reference -update`", path)
		}
	}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if _, known := files[filepath.ToSlash(name)]; !known {
			t.Errorf("%s is not generated any more; remove it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if again := generated(t); !maps.EqualFunc(files, again, bytes.Equal) {
		t.Error("two runs generate two texts")
	}
}

// Every document of package output has a schema.
func TestEveryDocumentHasASchema(t *testing.T) {
	files := generated(t)
	titles := map[string]bool{}
	for _, text := range files {
		var schema struct {
			Properties map[string]any `json:"properties"`
		}
		if json.Unmarshal(text, &schema) == nil {
			titles[strings.Join(slices.Sorted(maps.Keys(schema.Properties)), " ")] = true
		}
	}
	paths, err := filepath.Glob("../output/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			declared, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := declared.Type.(*ast.StructType)
			if !ok || len(structure.Fields.List) == 0 || !strings.Contains(fieldTag(structure.Fields.List[0]), `json:"schema"`) || declared.Name.Name == "Header" {
				return true
			}
			if !documented[declared.Name.Name] {
				t.Errorf("output.%s is a document without a schema; add it to the documents of package reference", declared.Name.Name)
			}
			return true
		})
	}
}

func fieldTag(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	return field.Tag.Value
}

// samples are a value of every document and every event's payload.
var samples = map[string]reflect.Type{
	"show": reflect.TypeFor[output.Show](), "trials": reflect.TypeFor[output.Trials](), "campaigns": reflect.TypeFor[output.Campaigns](),
	"best": reflect.TypeFor[output.Best](), "compare": reflect.TypeFor[output.Compare](), "validate": reflect.TypeFor[output.Validate](),
	"render": reflect.TypeFor[output.Render](), "fingerprint": reflect.TypeFor[output.Fingerprint](), "moved": reflect.TypeFor[output.Moved](), "bench": reflect.TypeFor[output.Bench](),
	"store-status": reflect.TypeFor[output.StoreStatus](), "export": reflect.TypeFor[store.Archive](),
	"event-campaign_started": reflect.TypeFor[output.CampaignStarted](), "event-plan": reflect.TypeFor[output.PlanMade](),
	"event-phase": reflect.TypeFor[output.PhaseEntered](), "event-trial_started": reflect.TypeFor[output.TrialStarted](),
	"event-stage": reflect.TypeFor[output.StageEntered](), "event-round": reflect.TypeFor[output.RoundMeasured](),
	"event-trial_finished": reflect.TypeFor[output.TrialFinished](), "event-warning": reflect.TypeFor[output.Warning](),
	"event-verdict": reflect.TypeFor[output.VerdictReached](), "event-campaign_finished": reflect.TypeFor[output.CampaignFinished](),
}

// documented are the names of the types among them.
var documented = func() map[string]bool {
	names := map[string]bool{}
	for _, of := range samples {
		names[of.Name()] = true
	}
	return names
}()

func compiled(t testing.TB, files map[string][]byte, name string) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(files["schema/"+name+".json"]))
	if err != nil {
		t.Fatalf("schema of %s: %v", name, err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		t.Fatalf("schema of %s: %v", name, err)
	}
	return schema
}

// Whatever a document holds, its JSON satisfies its schema, and without any one
// of the fields that are always there it does not.
func TestSchemasDescribeTheirDocuments(t *testing.T) {
	files := generated(t)
	for name := range files {
		if base, ok := strings.CutPrefix(name, "schema/"); ok && base != "campaign.json" && samples[strings.TrimSuffix(base, ".json")] == nil {
			t.Errorf("%s has no sample", name)
		}
	}
	for name, of := range samples {
		t.Run(name, func(t *testing.T) {
			schema := compiled(t, files, name)
			var required struct {
				Required []string `json:"required"`
			}
			if err := json.Unmarshal(files["schema/"+name+".json"], &required); err != nil || len(required.Required) == 0 {
				t.Fatalf("required fields %v, %v", required.Required, err)
			}
			rapid.Check(t, func(r *rapid.T) {
				value := reflect.New(of).Elem()
				fill(r, value, 0)
				text := documentText(r, name, value.Interface())
				instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
				if err != nil {
					r.Fatal(err)
				}
				if err := schema.Validate(instance); err != nil {
					r.Fatalf("%v\n%s", err, text)
				}
				left := rapid.SampledFrom(required.Required).Draw(r, "left out")
				delete(instance.(map[string]any), left)
				if schema.Validate(instance) == nil {
					r.Fatalf("without %s it is accepted", left)
				}
			})
		})
	}
}

// documentText is the JSON of a document, or of an event's whole line.
func documentText(r *rapid.T, name string, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		r.Fatal(err)
	}
	event, isEvent := strings.CutPrefix(name, "event-")
	if !isEvent {
		return text
	}
	line, err := output.Line("night", 1, store.Event{Seq: 3, Name: event, Time: time.Unix(1, 0), CampaignID: "01", Payload: text})
	if err != nil {
		r.Fatal(err)
	}
	return line
}

// fill gives a value random content; pointers, lists and maps are nil at times.
func fill(r *rapid.T, value reflect.Value, depth int) {
	if fillKnown(r, value) {
		return
	}
	some := depth < 6 && rapid.Bool().Draw(r, "some")
	switch value.Kind() {
	case reflect.Pointer:
		if some {
			value.Set(reflect.New(value.Type().Elem()))
			fill(r, value.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				fill(r, value.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if some {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			if item := value.Index(0); item.Kind() == reflect.Slice {
				item.Set(reflect.MakeSlice(item.Type(), 0, 0)) // a row of a matrix is there, if empty
			} else {
				fill(r, item, depth+1)
			}
		}
	case reflect.Array:
		for i := range value.Len() {
			fill(r, value.Index(i), depth+1)
		}
	case reflect.Map:
		if some {
			entry := reflect.New(value.Type().Elem()).Elem()
			fill(r, entry, depth+1)
			value.Set(reflect.MakeMap(value.Type()))
			value.SetMapIndex(reflect.ValueOf("key").Convert(value.Type().Key()), entry)
		}
	case reflect.String:
		value.SetString(rapid.SampledFrom([]string{"", "text"}).Draw(r, "text"))
	case reflect.Bool:
		value.SetBool(rapid.Bool().Draw(r, "truth"))
	case reflect.Float64:
		value.SetFloat(rapid.SampledFrom([]float64{0, -1.5, 1e21}).Draw(r, "number"))
	case reflect.Int, reflect.Int64:
		value.SetInt(int64(rapid.IntRange(-1, 99).Draw(r, "whole")))
	case reflect.Uint64:
		value.SetUint(uint64(rapid.IntRange(0, 99).Draw(r, "whole")))
	default:
		r.Fatalf("no way to fill a %s", value.Type())
	}
}

// fillKnown fills types that write their own JSON.
func fillKnown(r *rapid.T, value reflect.Value) bool {
	switch value.Interface().(type) {
	case time.Time:
		value.Set(reflect.ValueOf(time.Unix(int64(rapid.IntRange(0, 1<<30).Draw(r, "time")), 0).UTC()))
	case search.Value:
		values := []search.Value{search.Unset, search.Text("LL"), search.Int(4), search.Float(0.5), search.Bool(true)}
		value.Set(reflect.ValueOf(rapid.SampledFrom(values).Draw(r, "value")))
	case json.RawMessage:
		value.Set(reflect.ValueOf(json.RawMessage(rapid.SampledFrom([]string{"null", `{"a":1}`}).Draw(r, "raw"))))
	default:
		return false
	}
	return true
}

// Campaign files that are good satisfy the schema of the campaign file, and
// those with unknown keys or words do not.
func TestCampaignSchema(t *testing.T) {
	schema := compiled(t, generated(t), "campaign")
	var paths []string
	for _, pattern := range []string{"../spec/testdata/good/*.yaml", "../../examples/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 2 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(schema, text); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, name := range []string{"keys-unknown", "keys-missing", "keys-of-a-later-version", "search-sampler", "server-kind", "server-command-is-a-line", "durations", "yaml-wrong-shapes", "server-command-items"} {
		text, err := os.ReadFile("../spec/testdata/bad/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if validate(schema, text) == nil {
			t.Errorf("the schema accepts bad/%s.yaml", name)
		}
	}
}

// validate checks YAML as an editor does: read by YAML's own rules.
func validate(schema *jsonschema.Schema, text []byte) error {
	converted, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(converted))
	if err != nil {
		return err
	}
	return schema.Validate(instance)
}

// Every key of the campaign file is described, and stands on the page.
func TestEveryKeyIsDescribed(t *testing.T) {
	page := string(generated(t)["campaign-file.md"])
	seen := map[string]bool{}
	for _, key := range spec.Keys() {
		if key.Description == "" || !strings.HasSuffix(key.Description, ".") && !strings.HasSuffix(key.Description, "...") {
			t.Errorf("%s: description %q", key.Path, key.Description)
		}
		if seen[key.Path] || !strings.Contains(page, fmt.Sprintf("| `%s` |", key.Path)) {
			t.Errorf("%s stands on the page not once", key.Path)
		}
		seen[key.Path] = true
	}
	if len(seen) < 90 {
		t.Errorf("%d keys", len(seen))
	}
}
