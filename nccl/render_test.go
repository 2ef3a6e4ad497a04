package nccl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nocturne/nccl"
)

var (
	pci      = nccl.Context{NVLink: nccl.No, Nodes: 1}
	nvswitch = nccl.Context{NVLink: nccl.Yes, NVSwitch: nccl.Yes, Nodes: 1, ComputeCapability: 90}
)

func at(t testing.TB, c nccl.Context, text string) nccl.Context {
	t.Helper()
	c.Version = version(t, text)
	return c
}

const everything = "ring,tree,nvls,nvlstree,collnetdirect,collnetchain,pat"

func TestRenderAlgorithms(t *testing.T) {
	for _, c := range []struct {
		context      nccl.Context
		intent, want string
	}{
		{at(t, pci, "2.23.4"), "Tree", "Tree"},
		{at(t, pci, "2.24.3"), "Tree", "ring,tree;allreduce:tree"},
		{at(t, pci, "2.28.9"), "Tree", "ring,tree;allreduce:tree"},
		{at(t, pci, "2.31.2"), "Tree", "ring,tree;allreduce:tree"},
		{at(t, nvswitch, "2.28.9"), "Tree", everything + ";allreduce:tree"},
		{at(t, nvswitch, "2.28.9"), "NVLS", everything + ";allreduce:nvls"},
		{at(t, nccl.Context{NVLink: nccl.No}, "2.28.9"), "Tree", everything + ";allreduce:tree"},
		{at(t, nccl.Context{NVLink: nccl.No, Nodes: 2}, "2.28.9"), "Tree", everything + ";allreduce:tree"},
		{at(t, pci, "2.28.9"), "Ring", "Ring"},
		{at(t, nvswitch, "2.31.2"), "Ring", "Ring"},
		{pci, "Ring", "Ring"},
		{at(t, nvswitch, "2.28.9"), "^Tree", "^Tree"},
		{at(t, nvswitch, "2.28.9"), "^Ring", everything + ";allreduce:^ring"},
		{at(t, pci, "2.23.4"), "^Ring", "^Ring"},
		{at(t, pci, "2.28.9"), "allreduce:Ring", "ring,tree;allreduce:ring"},
		{at(t, pci, "2.23.4"), "allreduce:Ring", "Ring"},
		{at(t, pci, "2.31.2"), "Tree,Ring;allreduce:Tree", "tree,ring;allreduce:tree"},
		{pci, "Tree", "tree,ring;broadcast:ring;reduce:ring;allgather:^tree;reducescatter:^tree;allreduce:tree"},
	} {
		got, err := nccl.Render(c.context, map[string]string{"NCCL_ALGO": c.intent, "NCCL_BUFFSIZE": "65536"})
		if err != nil || got["NCCL_ALGO"] != c.want {
			t.Errorf("%s on %s renders as %q, %v; want %q", c.intent, c.context.Version, got["NCCL_ALGO"], err, c.want)
		}
		if got["NCCL_BUFFSIZE"] != "65536" {
			t.Error("other variables must stay as they are")
		}
	}
}

func TestRenderProtocols(t *testing.T) {
	for _, c := range []struct {
		context      nccl.Context
		intent, want string
	}{
		{at(t, pci, "2.12.12"), "LL", "LL"},
		{at(t, pci, "2.31.2"), "LL", "LL"},
		{pci, "LL,Simple", "LL,Simple"},
		{at(t, pci, "2.20.5"), "^LL128", "^LL128"},
		{at(t, pci, "2.24.3"), "allreduce:LL", "allreduce:LL"},
	} {
		got, err := nccl.Render(c.context, map[string]string{"NCCL_PROTO": c.intent})
		if err != nil || got["NCCL_PROTO"] != c.want {
			t.Errorf("%s on %s renders as %q, %v; want %q", c.intent, c.context.Version, got["NCCL_PROTO"], err, c.want)
		}
	}
}

func TestRenderPolicy(t *testing.T) {
	for policy, want := range map[string]string{"EFFICIENCY": "1", "DEFAULT": "0", "ZERO": "2", "EFFICIENCY|ZERO": "EFFICIENCY|ZERO"} {
		got, err := nccl.Render(at(t, pci, "2.28.9"), map[string]string{"NCCL_CTA_POLICY": policy})
		if err != nil || got["NCCL_CTA_POLICY"] != want {
			t.Errorf("%s renders as %q, %v; want %q", policy, got["NCCL_CTA_POLICY"], err, want)
		}
	}
}

func TestRenderRefusals(t *testing.T) {
	for name, intent := range map[string]string{"NCCL_PROTO": "allreduce:LL", "NCCL_ALGO": "reduce:Ring;allreduce:Tree"} {
		_, err := nccl.Render(at(t, pci, "2.23.4"), map[string]string{name: intent})
		var refusal *nccl.RenderError
		if !errors.As(err, &refusal) || refusal.Name != name || !strings.Contains(err.Error(), "2.23.4") {
			t.Errorf("%s=%s before 2.24: %v", name, intent, err)
		}
	}
	_, err := nccl.Render(at(t, pci, "2.23.4"), map[string]string{"NCCL_PROTO": "allreduce:LL", "NCCL_ALGO": "Bush"})
	if err == nil || !strings.Contains(err.Error(), "NCCL_ALGO") || !strings.Contains(err.Error(), "NCCL_PROTO") {
		t.Errorf("both faults must be told at once: %v", err)
	}
	var fault *nccl.ValueError
	if _, err := nccl.Render(pci, map[string]string{"NCCL_ALGO": "Bush"}); !errors.As(err, &fault) || fault.Name != "NCCL_ALGO" {
		t.Errorf("an unknown name: %v", err)
	}
	if got, err := nccl.Render(pci, nil); err != nil || len(got) != 0 || got == nil {
		t.Errorf("nothing renders as %v, %v", got, err)
	}
}

// The two parsers of NCCL, written from their description, read a rendered
// text. parseOld returns the list of every function; words that it does not
// know are ignored. parseNew fails on them.
var (
	algorithmNames = []string{"tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"}
	functions      = []string{"broadcast", "reduce", "allgather", "reducescatter", "allreduce"}
)

func parseOld(text string) map[string]bool {
	text, exclude := strings.CutPrefix(text, "^")
	enabled := map[string]bool{}
	for _, name := range algorithmNames {
		enabled[name] = exclude
	}
	for _, word := range strings.Split(text, ",") {
		if word = strings.ToLower(word); slices.Contains(algorithmNames, word) {
			enabled[word] = !exclude
		}
	}
	return enabled
}

func parseNew(t *rapid.T, text string) map[string]map[string]bool {
	matrix := map[string]map[string]bool{}
	for i, part := range strings.Split(text, ";") {
		function, list, found := strings.Cut(part, ":")
		if !found {
			if function, list = "", part; i > 0 {
				t.Fatalf("%q: an entry without a function comes late", text)
			}
		}
		list, exclude := strings.CutPrefix(list, "^")
		for _, name := range functions {
			if function != "" && !strings.EqualFold(function, name) {
				continue
			}
			matrix[name] = map[string]bool{}
			for _, algorithm := range algorithmNames {
				matrix[name][algorithm] = exclude
			}
			for _, word := range strings.Split(list, ",") {
				if !slices.Contains(algorithmNames, strings.ToLower(word)) {
					t.Fatalf("%q: unknown word %q", text, word)
				}
				matrix[name][strings.ToLower(word)] = !exclude
			}
		}
	}
	return matrix
}

// Whatever the version and the platform, NCCL reads the rendered text as the
// intent: the all-reduce has the wanted algorithms, and a list without Ring
// leaves the other collectives all that they have.
func TestRenderedAlgorithmsMeanTheIntent(t *testing.T) {
	spelled := []string{"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}
	versions := []string{"", "2.12.12", "2.19.4", "2.23.4", "2.24.3", "2.28.9", "2.31.2"}
	rapid.Check(t, func(t *rapid.T) {
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(spelled), 1, 6, rapid.ID[string]).Draw(t, "algorithms")
		exclude := rapid.Bool().Draw(t, "exclude")
		intent := strings.Join(chosen, ",")
		if exclude {
			intent = "^" + intent
		}
		canonical, err := nccl.Canonicalize("NCCL_ALGO", intent, nccl.Reading{})
		if err != nil {
			t.Fatal(err)
		}
		c := nccl.Context{Nodes: rapid.IntRange(0, 2).Draw(t, "nodes"), NVSwitch: rapid.SampledFrom([]nccl.Tri{nccl.Unknown, nccl.No, nccl.Yes}).Draw(t, "nvswitch")}
		text := rapid.SampledFrom(versions).Draw(t, "version")
		if text != "" {
			c.Version, _ = nccl.ParseVersion(text)
		}
		environment, err := nccl.Render(c, map[string]string{"NCCL_ALGO": canonical})
		if err != nil {
			t.Fatal(err)
		}
		rendered := environment["NCCL_ALGO"]
		want := func(algorithm string) bool { return slices.Contains(lowered(chosen), algorithm) != exclude }
		if text == "" || c.Version.Before(nccl.Version{Major: 2, Minor: 24}) {
			for algorithm, enabled := range parseOld(rendered) {
				if enabled != want(algorithm) {
					t.Fatalf("before 2.24 %q reads %s as %v, the intent %q does not", rendered, algorithm, enabled, canonical)
				}
			}
		}
		if text == "" || c.Version.AtLeast(nccl.Version{Major: 2, Minor: 24}) {
			checkNewReading(t, parseNew(t, rendered), rendered, c, want)
		}
	})
}

func checkNewReading(t *rapid.T, matrix map[string]map[string]bool, rendered string, c nccl.Context, want func(string) bool) {
	if len(matrix) != len(functions) {
		t.Fatalf("%q leaves a collective unnamed, which 2.31 would switch off", rendered)
	}
	for algorithm, enabled := range matrix["allreduce"] {
		if enabled != want(algorithm) {
			t.Fatalf("%q reads %s of the all-reduce as %v", rendered, algorithm, enabled)
		}
	}
	if want("ring") {
		return // the list stands for every collective
	}
	others := map[string][]string{"broadcast": {"ring"}, "reduce": {"ring"}, "allgather": {"ring"}, "reducescatter": {"ring"}}
	if c.Nodes != 1 || c.NVSwitch != nccl.No {
		others["allgather"] = []string{"ring", "collnetdirect", "nvls", "pat"}
		others["reducescatter"] = others["allgather"]
	}
	for function, algorithms := range others {
		for _, algorithm := range algorithms {
			if !matrix[function][algorithm] {
				t.Fatalf("%q takes %s from %s", rendered, algorithm, function)
			}
		}
	}
}

func lowered(words []string) []string {
	low := make([]string, len(words))
	for i, word := range words {
		low[i] = strings.ToLower(word)
	}
	return low
}
