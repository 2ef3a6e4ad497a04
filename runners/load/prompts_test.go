package load

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nocturne/runners"
)

func open(t *testing.T, workload runners.Workload) *Dataset {
	t.Helper()
	d, err := OpenDataset(workload)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func promptFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prompts.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Prompts of a campaign are the same in each trial and unlike each other
// everywhere within one: over load points, rounds, warm-up and requests.
func TestF24_PromptsAreUniqueAndRepeatable(t *testing.T) {
	file := promptFile(t, `{"prompt":"one"}`+"\n"+`{"prompt":"two"}`+"\n"+`{"prompt":"three"}`+"\n")
	for _, workload := range []runners.Workload{
		{Name: "random", Dataset: DatasetRandom, InputTokens: 32, Requests: 200, Warmup: 20, Seed: 7},
		{Name: "prompts", Dataset: DatasetPrompts, File: file, Requests: 200, Warmup: 20, Seed: 7},
	} {
		t.Run(workload.Name, func(t *testing.T) {
			first, second := open(t, workload), open(t, workload)
			starts := map[string]bool{}
			for point := range 3 {
				for round := range 5 {
					prompts := first.Prompts(point, round)
					if diff := cmp.Diff(prompts, second.Prompts(point, round)); diff != "" {
						t.Fatalf("two trials differ: %s", diff)
					}
					want := 200
					if round == WarmupRound {
						want = 20
					}
					if len(prompts) != want {
						t.Fatalf("%d prompts in round %d, want %d", len(prompts), round, want)
					}
					for _, p := range prompts {
						start := strings.Join(strings.Fields(p.Text)[:min(8, len(strings.Fields(p.Text)))], " ")
						if workload.Dataset == DatasetPrompts {
							start, _, _ = strings.Cut(p.Text, "\n")
						}
						if starts[start] {
							t.Fatalf("prefix %q occurs twice", start)
						}
						starts[start] = true
					}
				}
			}
			other := workload
			other.Seed = 8
			if slices.Equal(first.Prompts(0, 1), open(t, other).Prompts(0, 1)) {
				t.Error("another campaign sends the same prompts")
			}
		})
	}
}

// The prompts of a seed are part of a stored campaign: they may not change.
func TestDataset_PromptsAreFixed(t *testing.T) {
	d := open(t, runners.Workload{Dataset: DatasetRandom, InputTokens: 10, Requests: 2, Seed: 42})
	got := []string{d.Prompts(0, 1)[0].Text, d.Prompts(1, 2)[1].Text}
	want := []string{
		"bring gave lot branch game fly good left matter eight",
		"inch meet mind earth change after apple choose mine been",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDataset_RandomLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.IntRange(1, 400).Draw(t, "tokens")
		d, err := OpenDataset(runners.Workload{Dataset: DatasetRandom, InputTokens: tokens, Requests: 3, Seed: rapid.Uint64().Draw(t, "seed")})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Prompts(rapid.IntRange(0, 9).Draw(t, "point"), rapid.IntRange(1, 9).Draw(t, "round")) {
			if n := len(strings.Fields(p.Text)); n != tokens {
				t.Fatalf("%d words, want %d", n, tokens)
			}
		}
	})
	if unique := slices.Compact(slices.Sorted(slices.Values(words))); len(unique) != 512 {
		t.Errorf("%d distinct words, want 512", len(unique))
	}
}

// Rounds over a file repeat one another: the same prompts behind other nonces,
// in another order.
func TestDataset_RoundsSendTheSamePromptsOfTheFile(t *testing.T) {
	var lines strings.Builder
	for i := range 50 {
		fmt.Fprintf(&lines, `{"prompt":"p%d"}`+"\n", i)
	}
	d := open(t, runners.Workload{Dataset: DatasetPrompts, File: promptFile(t, lines.String()), Requests: 20, Seed: 3})
	texts := func(round int) (texts []string) {
		for _, p := range d.Prompts(0, round) {
			_, text, _ := strings.Cut(p.Text, "\n")
			texts = append(texts, text)
		}
		return texts
	}
	one, two := texts(1), texts(2)
	if slices.Equal(one, two) {
		t.Error("two rounds have the same order")
	}
	slices.Sort(one)
	slices.Sort(two)
	if !slices.Equal(one, two) {
		t.Errorf("two rounds send other prompts:\n%v\n%v", one, two)
	}
	if len(slices.Compact(one)) != 20 {
		t.Error("a prompt is repeated though the file has enough")
	}
}

func TestOpenDataset_Files(t *testing.T) {
	for _, test := range []struct {
		name, content string
		want          []string
		fault         string
	}{
		{"lines", "{\"prompt\":\"a\"}\n\n{\"prompt\":\"b\",\"x\":1}", []string{"a", "b"}, ""},
		{"byte order mark, CRLF", "\xef\xbb\xbf{\"prompt\":\"a\"}\r\n{\"prompt\":\"b\"}\r\n", []string{"a", "b"}, ""},
		{"ShareGPT lines", `{"conversations":[{"from":"system","value":"s"},{"from":"human","value":"a"},{"from":"gpt","value":"x"}]}`, []string{"a"}, ""},
		{"ShareGPT array", "[\n{\"id\":\"1\",\"conversations\":[{\"from\":\"human\",\"value\":\"a\"}]},\n{\"conversations\":[]},\n{\"conversations\":[{\"from\":\"gpt\",\"value\":\"x\"}]},{\"prompt\":\"b\"}\n]\n", []string{"a", "b"}, ""},
		{"empty", "\n", nil, "no prompts"},
		{"only empty conversations", `[{"conversations":[]}]`, nil, "no prompts"},
		{"an empty prompt", "{\"prompt\":\"a\"}\n{\"prompt\":\" \"}\n", nil, "prompts.jsonl:2: the prompt is empty"},
		{"not JSON", "{\"prompt\":\"a\"}\n\nhello\n", nil, "prompts.jsonl:3: not an object"},
		{"all faults", "{}\n{\"prompt\":\"a\"}\n{\"prompt\":3}\n", nil, "prompts.jsonl:1: neither \"prompt\" nor \"conversations\"\n" + "FILE:3: not an object"},
		{"fault in an array", "[\n{\"prompt\":\"a\"},\n\n  {\"promt\":\"b\"}]", nil, "prompts.jsonl:4: neither"},
		{"broken array", "[\n{\"prompt\":\"a\"},\n{\"prompt\":]", nil, "prompts.jsonl:3: "},
		{"array without an end", "[\n{\"prompt\":\"a\"}\n", nil, "does not end"},
		{"more after the array", "[{\"prompt\":\"a\"}]\n{\"prompt\":\"b\"}\n", nil, "more follows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := promptFile(t, test.content)
			got, err := readPrompts(path, "")
			if test.fault != "" {
				want := strings.ReplaceAll(test.fault, "FILE", path)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpenDataset_Refuses(t *testing.T) {
	path := promptFile(t, `{"prompt":"a"}`)
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(`{"prompt":"a"}`)))
	for _, w := range []runners.Workload{
		{Dataset: DatasetPrompts, File: path, FileDigest: digest},
		{Dataset: DatasetPrompts, File: path, FileDigest: "sha256:" + strings.ToUpper(digest)},
	} {
		open(t, w)
	}
	for fault, w := range map[string]runners.Workload{
		"has changed":         {Dataset: DatasetPrompts, File: path, FileDigest: strings.Repeat("0", 64)},
		"reading the prompts": {Dataset: DatasetPrompts, File: path + ".missing"},
		"input_tokens":        {Dataset: DatasetRandom},
		"unknown dataset":     {Dataset: "sonnet"},
	} {
		if _, err := OpenDataset(w); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("error %v, want %q", err, fault)
		}
	}
}

// FuzzPromptFile checks that no file makes the reader panic or yield an empty
// prompt.
func FuzzPromptFile(f *testing.F) {
	f.Add([]byte("{\"prompt\":\"a\"}\n[]"))
	f.Add([]byte("[{\"prompt\":\"a\"},\n]"))
	f.Add([]byte("[1,2"))
	f.Fuzz(func(t *testing.T, content []byte) {
		prompts, err := parsePrompts("f", content)
		if (err == nil) != (len(prompts) > 0) {
			t.Errorf("%d prompts with error %v", len(prompts), err)
		}
		for _, p := range prompts {
			if strings.TrimSpace(p) == "" {
				t.Error("an empty prompt")
			}
		}
	})
}
