package spec_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"nocturne/nccl"
	"nocturne/runners"
	"nocturne/search"
	"nocturne/store"
	"nocturne/tuner/spec"
)

// resolvedFile is what the golden file of a good campaign file holds.
type resolvedFile struct {
	Warnings       []string              `json:"warnings"`
	Name           string                `json:"name"`
	Model          string                `json:"model"`
	Resolved       spec.Resolved         `json:"resolved"`
	Configurations map[string]launchFile `json:"configurations"`
}

// launchFile is one configuration with its job.
type launchFile struct {
	Configuration store.Configuration `json:"configuration"`
	Job           jobFile             `json:"job"`
}

type jobFile struct {
	Args      []string          `json:"args"`
	Env       map[string]string `json:"env"`
	Inherit   []string          `json:"inherit"`
	Secrets   []runners.Secret  `json:"secrets"`
	Prove     []string          `json:"prove"`
	Directory string            `json:"directory"`
	Model     string            `json:"model"`
}

func launchOf(t *testing.T, campaign *spec.Campaign, values search.Values, facts nccl.Context) launchFile {
	t.Helper()
	configuration, err := campaign.Configuration(values, facts)
	if err != nil {
		t.Fatal(err)
	}
	job, err := campaign.Job(values, facts)
	if err != nil {
		t.Fatal(err)
	}
	return launchFile{configuration, jobFile{Args: job.Args, Env: job.Env, Inherit: job.Inherit, Secrets: job.Secrets, Prove: job.Prove, Directory: job.Directory, Model: job.Model}}
}

// pcie is a node whose GPUs talk over PCIe, with a present NCCL.
var pcie = nccl.Context{Version: nccl.Version{Major: 2, Minor: 28, Patch: 9}, NVLink: nccl.No, NVSwitch: nccl.No, Nodes: 1, Ranks: 8}

// TestGoodFiles compares what each good file comes to: the resolved form, and
// the configurations of its baseline, current and hints as they are launched
// with nothing known of NCCL, and on a PCIe node with 2.28.
func TestGoodFiles(t *testing.T) {
	for _, path := range files(t, "testdata/good/*.yaml", 10) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			campaign, warnings, err := spec.Parse(path, read(t, path), spec.Options{})
			if err != nil {
				t.Fatal(err)
			}
			resolved, err := campaign.Resolved()
			if err != nil {
				t.Fatal(err)
			}
			out := resolvedFile{Warnings: []string{}, Name: campaign.Name, Model: campaign.Model, Resolved: resolved, Configurations: map[string]launchFile{}}
			for _, warning := range warnings {
				checkPosition(t, campaign.File, warning)
				out.Warnings = append(out.Warnings, strings.TrimPrefix(warning.String(), "testdata/good/"))
			}
			configurations := map[string]search.Values{"baseline": campaign.Baseline}
			if campaign.Current != nil {
				configurations["current"] = campaign.Current
			}
			for i, hint := range campaign.Hints {
				configurations["try "+string(rune('0'+i))] = hint
			}
			for name, values := range configurations {
				out.Configurations[name] = launchOf(t, campaign, values, nccl.Context{})
				out.Configurations[name+" on PCIe with 2.28"] = launchOf(t, campaign, values, pcie)
			}
			text, err := json.MarshalIndent(out, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".json", []byte(neutral(t, string(text))+"\n"))
		})
	}
}

// A campaign that is read again from what was stored is the same campaign.
func TestStoredTextGivesTheSameCampaign(t *testing.T) {
	for _, path := range files(t, "testdata/good/*.yaml", 10) {
		first, _, err := spec.Parse(path, read(t, path), spec.Options{})
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := first.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		second, _, err := spec.ParseStored("stored.yaml", spec.StoredDirectory(resolved), []byte(first.File), spec.Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := second.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		if fixed, free := spec.Changes(resolved, again); len(fixed)+len(free) > 0 {
			t.Errorf("%s: read again it differs: %v %v", path, fixed, free)
		}
		if first.WorkloadKey() != second.WorkloadKey() || first.ModelKey() != second.ModelKey() || first.Digest() != second.Digest() {
			t.Errorf("%s: read again its keys differ", path)
		}
	}
}

// The examples of the guide are campaign files.
func TestGuide(t *testing.T) {
	guide := string(read(t, "../../docs/campaign-file.md"))
	blocks := strings.Split(guide, "```yaml\n")[1:]
	if len(blocks) < 2 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if _, _, err := spec.Parse("testdata/good/guide.yaml", []byte(text), spec.Options{}); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}
