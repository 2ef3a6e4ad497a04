package recipes_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nocturne/nccl"
	"nocturne/runners/servers"
	"nocturne/search"
	"nocturne/tuner/recipes"
)

// Each recipe can be cited, and its values are what NCCL takes.
func TestEveryRecipeIsWhole(t *testing.T) {
	names := map[string]bool{}
	for _, recipe := range recipes.All() {
		if recipe.Name == "" || names[recipe.Name] || recipe.Title == "" || recipe.Source.Title == "" || len(recipe.Values) == 0 {
			t.Errorf("recipe %+v lacks a name of its own, a title, a source or values", recipe)
		}
		names[recipe.Name] = true
		checkSource(t, recipe)
		for _, kind := range recipe.When.Servers {
			if _, err := servers.Get(kind); err != nil {
				t.Errorf("recipe %s: %v", recipe.Name, err)
			}
		}
		for _, values := range []map[string]recipes.Setting{recipe.Values, recipe.Also} {
			for id, value := range values {
				if text, err := nccl.Canonicalize(id, value.String(), nccl.Reading{}); strings.HasPrefix(id, "NCCL_") && (err != nil || text != value.String()) {
					t.Errorf("recipe %s: %s=%s is %q to NCCL (%v)", recipe.Name, id, value, text, err)
				}
			}
		}
	}
}

// checkSource looks for the section of our own documentation that is cited; other
// pages are not ours to look for.
func checkSource(t *testing.T, recipe recipes.Recipe) {
	t.Helper()
	source, err := url.Parse(recipe.Source.URL)
	if err != nil || source.Scheme == "" && source.Path == "" {
		t.Errorf("recipe %s has the source %q (%v)", recipe.Name, recipe.Source.URL, err)
		return
	}
	if source.Scheme != "" {
		return
	}
	page, err := os.ReadFile(filepath.Join("../..", source.Path))
	if err != nil {
		t.Errorf("recipe %s: %v", recipe.Name, err)
	}
	heading := "# " + strings.ReplaceAll(source.Fragment, "-", " ")
	if !strings.Contains(strings.ToLower(string(page)), heading) {
		t.Errorf("recipe %s: %s has no section %q", recipe.Name, source.Path, heading)
	}
}

func TestFits(t *testing.T) {
	eight := recipes.Place{GPUs: 8, NVLink: nccl.No, Sockets: 2, Concurrency: 1, Server: "sglang", Method: "eagle3"}
	changed := func(change func(*recipes.Place)) recipes.Place {
		place := eight
		change(&place)
		return place
	}
	tests := map[string]struct {
		place recipes.Place
		want  string
	}{
		"the box of the story":  {eight, "pcie-8-eagle3 pcie-8 pcie-low-latency"},
		"no speculation":        {changed(func(p *recipes.Place) { p.Method = "" }), "pcie-8 pcie-low-latency"},
		"four GPUs":             {changed(func(p *recipes.Place) { p.GPUs = 4 }), "pcie-low-latency"},
		"two GPUs":              {changed(func(p *recipes.Place) { p.GPUs = 2 }), ""},
		"NVLink":                {changed(func(p *recipes.Place) { p.NVLink = nccl.Yes }), ""},
		"links not known":       {changed(func(p *recipes.Place) { p.NVLink = nccl.Unknown }), ""},
		"many requests":         {changed(func(p *recipes.Place) { p.Concurrency = 128 }), "pcie-many-requests"},
		"dozens of requests":    {changed(func(p *recipes.Place) { p.Concurrency = 32 }), "eagle3-3"},
		"concurrency not known": {changed(func(p *recipes.Place) { p.Concurrency = 0 }), ""},
		"vLLM with MTP":         {changed(func(p *recipes.Place) { p.Server, p.Method = "vllm", "mtp" }), "pcie-8 pcie-low-latency mtp-2"},
		"nothing known":         {recipes.Place{}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var names []string
			for _, recipe := range recipes.All() {
				if recipe.Fits(test.place) {
					names = append(names, recipe.Name)
				}
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("fitting are %q, want %q", got, test.want)
			}
		})
	}
}

// Numbers are numbers and words are words, as the knobs of a space have them.
func TestSettingsAreTyped(t *testing.T) {
	first := recipes.All()[0]
	if first.Values["speculative.steps"].Value != search.Int(2) || first.Values["NCCL_PROTO"].Value != search.Text("LL") || first.Also["NCCL_BUFFSIZE"].Value != search.Int(16<<20) {
		t.Errorf("the first recipe has %v and %v", first.Values, first.Also)
	}
}
