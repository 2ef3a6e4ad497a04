package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// oddTokenizer takes words for one to three tokens, and puts some before each
// text.
type oddTokenizer struct {
	before int
	asked  *atomic.Int64
}

func (o oddTokenizer) Count(_ context.Context, text string) (int, error) {
	o.asked.Add(1)
	tokens := o.before
	for word := range strings.FieldsSeq(text) {
		h := fnv.New32a()
		h.Write([]byte(word))
		tokens++
		if h.Sum32()%7 == 0 {
			tokens += 1 + int(h.Sum32()>>8)%2
		}
	}
	return tokens, nil
}

// Prompts have exactly the length asked for, repeat, and are like no other.
func TestFitted_ExactLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := DatasetSpec{
			Dataset:     rapid.SampledFrom([]string{DatasetRandom, DatasetSharedPrefix}).Draw(t, "dataset"),
			InputTokens: rapid.IntRange(8, 300).Draw(t, "tokens"), Requests: 6, Warmup: 2, Seed: rapid.Uint64().Draw(t, "seed"),
		}
		tokenizer := oddTokenizer{before: rapid.IntRange(0, 3).Draw(t, "before"), asked: new(atomic.Int64)}
		if spec.Dataset == DatasetSharedPrefix {
			spec.PrefixTokens, spec.Prefixes = rapid.IntRange(8, 100).Draw(t, "prefix"), rapid.IntRange(1, 4).Draw(t, "prefixes")
		}
		d, err := NewDataset(spec)
		if err != nil {
			t.Fatal(err)
		}
		prompts, err := d.Fitted(context.Background(), 0, 1, tokenizer)
		if err != nil {
			t.Fatal(err)
		}
		asked := tokenizer.asked.Load()
		texts := map[string]bool{}
		for _, p := range prompts {
			if n, _ := tokenizer.Count(context.Background(), p.Text); n != spec.Length() || n != p.Tokens {
				t.Fatalf("%d tokens, want %d, recorded %d", n, spec.Length(), p.Tokens)
			}
			texts[p.Text] = true
		}
		if len(texts) != 6 {
			t.Fatalf("%d texts among 6 prompts", len(texts))
		}
		again, err := d.Fitted(context.Background(), 0, 1, tokenizer)
		if err != nil || cmp.Diff(prompts, again) != "" {
			t.Fatalf("not the same again: %v", err)
		}
		if asked > 6*12 {
			t.Fatalf("%d counts for 6 prompts", asked)
		}
	})
}

// Every prompt of a group begins with the group's prefix, which no other group,
// round or load point has.
func TestDataset_SharedPrefix(t *testing.T) {
	d, err := NewDataset(DatasetSpec{Dataset: DatasetSharedPrefix, PrefixTokens: 40, Prefixes: 3, InputTokens: 10, Requests: 30, Warmup: 6, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]int{}
	ends := map[string]bool{}
	for point := range 2 {
		for round := range 3 {
			for _, p := range d.Prompts(point, round) {
				words := strings.Fields(p.Text)
				if len(words) != 50 {
					t.Fatalf("%d words, want 50", len(words))
				}
				groups[strings.Join(words[:40], " ")]++
				ends[strings.Join(words[40:], " ")] = true
			}
		}
	}
	if len(groups) != 2*3*3 || len(ends) != 2*(6+30+30) {
		t.Errorf("%d prefixes and %d ends, want 18 and 132", len(groups), len(ends))
	}
	for _, count := range groups {
		if count != 10 && count != 2 {
			t.Errorf("a prefix is shared by %d prompts, want 10 (2 in the warm-up)", count)
		}
	}
	for _, bad := range []DatasetSpec{{PrefixTokens: 1, Prefixes: 1}, {InputTokens: 1, Prefixes: 1}, {InputTokens: 1, PrefixTokens: 1}} {
		bad.Dataset = DatasetSharedPrefix
		if _, err := NewDataset(bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// The pages of three kinds of server: what is asked, and how the count is told.
func TestTokenizer_Pages(t *testing.T) {
	for _, test := range []struct {
		kind     string
		protocol Protocol
		want     map[string]any
		reply    string
	}{
		{"vllm", OpenAICompletions, map[string]any{"model": "m", "prompt": "one two", "add_special_tokens": true}, `{"count":3,"max_model_len":4096,"tokens":[1,2,3],"token_strs":null}`},
		{"vllm", OpenAIChat, map[string]any{"model": "m", "prompt": "one two", "add_special_tokens": false}, `{"count":3,"max_model_len":4096,"tokens":[1,2,3]}`},
		{"sglang", SGLangGenerate, map[string]any{"model": "m", "prompt": "one two", "add_special_tokens": true}, `{"tokens":[1,2,3],"count":3,"max_model_len":40960}`},
		{"llamacpp", OpenAICompletions, map[string]any{"content": "one two", "add_special": true, "parse_special": true}, `{"tokens":[1,2,3]}`},
	} {
		t.Run(test.kind+"/"+string(test.protocol), func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				client := serve(t, test.protocol, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					var got map[string]any
					if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.URL.Path != "/tokenize" {
						t.Errorf("%s %v", r.URL.Path, err)
					}
					if diff := cmp.Diff(test.want, got); diff != "" {
						t.Error(diff)
					}
					fmt.Fprint(w, test.reply)
				}))
				tokenizer, ok := client.Tokenizer(test.kind)
				if !ok {
					t.Fatal("no tokenizer")
				}
				if n, err := tokenizer.Count(t.Context(), "one two"); n != 3 || err != nil {
					t.Errorf("%d tokens, %v", n, err)
				}
			})
		})
	}
}

func TestTokenizer_Failures(t *testing.T) {
	for _, test := range []struct {
		status  int
		reply   string
		missing bool
		want    string
	}{
		{404, "Not Found", true, "no tokenizer page"},
		{405, "", true, "no tokenizer page"},
		{400, `{"error":{"message":"model not found"}}`, false, "model not found"},
		{503, `{"error":{"message":"Loading model"}}`, false, "Loading model"},
		{200, `<html>`, false, "not what was expected"},
		{200, `{"count":-1}`, false, "holds no tokens"},
	} {
		virtual(t, func(t *testing.T) {
			client := serve(t, OpenAICompletions, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.reply)
			}))
			tokenizer, _ := client.Tokenizer("vllm")
			_, err := tokenizer.Count(t.Context(), "a")
			if err == nil || errors.Is(err, ErrNoTokenizer) != test.missing || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d %s: %v", test.status, test.reply, err)
			}
			d, openErr := NewDataset(DatasetSpec{Dataset: DatasetRandom, InputTokens: 5, Requests: 3})
			if openErr != nil {
				t.Fatal(openErr)
			}
			if _, err := d.Fitted(t.Context(), 0, 1, tokenizer); errors.Is(err, ErrNoTokenizer) != test.missing || err == nil {
				t.Errorf("fitting: %v", err)
			}
		})
	}
	client, err := New(Target{BaseURL: "http://127.0.0.1:1", Protocol: OpenAIChat})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := client.Tokenizer("trtllm"); ok {
		t.Error("TensorRT-LLM has a tokenizer")
	}
}

// pieces counts as llama.cpp does with a vocabulary of characters: a token for the
// beginning of the text, one for the space that is put before its first word, and
// one for each byte, except that some pairs of letters are one.
type pieces struct{ merges []string }

func (p pieces) Count(_ context.Context, text string) (int, error) {
	for _, pair := range p.merges {
		text = strings.ReplaceAll(text, pair, "#")
	}
	return 2 + len(text), nil
}

// No word is one token here, and still a length can be had: letters make up what
// words leave.
func TestFitted_TokensOfLetters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := DatasetSpec{
			Dataset:     rapid.SampledFrom([]string{DatasetRandom, DatasetSharedPrefix}).Draw(t, "dataset"),
			InputTokens: rapid.IntRange(20, 400).Draw(t, "tokens"), Requests: 4, Seed: rapid.Uint64().Draw(t, "seed"),
		}
		if spec.Dataset == DatasetSharedPrefix {
			spec.PrefixTokens, spec.Prefixes = rapid.IntRange(20, 100).Draw(t, "prefix"), 2
		}
		d, err := NewDataset(spec)
		if err != nil {
			t.Fatal(err)
		}
		tokenizer := pieces{rapid.SampledFrom([][]string{nil, {"th", "ing", "er"}, {" t", "e "}}).Draw(t, "merges")}
		prompts, err := d.Fitted(context.Background(), 0, 1, tokenizer)
		if err != nil {
			t.Fatal(err)
		}
		for _, prompt := range prompts {
			count, _ := tokenizer.Count(context.Background(), prompt.Text)
			if prompt.Tokens != count || distance(count, spec.Length()) > 1 || len(tokenizer.merges) == 0 && count != spec.Length() {
				t.Fatalf("%d tokens (recorded as %d) of %d: %q", count, prompt.Tokens, spec.Length(), prompt.Text)
			}
		}
	})
}

// coarse counts no text as less than twelve tokens, and none as an odd number.
type coarse struct{}

func (coarse) Count(_ context.Context, text string) (int, error) {
	return 10 + 2*len(strings.Fields(text)), nil
}

// A length that no text has is no error: the nearest is taken, on record.
func TestFitted_NearestLength(t *testing.T) {
	for asked, want := range map[int]int{5: 12, 12: 12, 301: 300} {
		d, err := NewDataset(DatasetSpec{Workload: "w", Dataset: DatasetRandom, InputTokens: asked, Requests: 3})
		if err != nil {
			t.Fatal(err)
		}
		prompts, err := d.Fitted(t.Context(), 0, 1, coarse{})
		if err != nil {
			t.Fatal(err)
		}
		for _, prompt := range prompts {
			if prompt.Tokens != want && prompt.Tokens != 2*asked-want {
				t.Errorf("%d tokens for the %d asked for, want %d", prompt.Tokens, asked, want)
			}
		}
	}
}

// Prompts that miss their length are told of, and so is a server that counts
// otherwise than its tokenizer.
func TestRound_NotesInputLengths(t *testing.T) {
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, script(completion(ms, ms, 2, 2)...)) // 10 input tokens each
		for _, test := range []struct {
			lengths []int
			want    string
		}{
			{[]int{10, 10, 10}, ""},
			{[]int{0, 0, 0}, ""},
			{[]int{9, 10, 10}, "1 of 3 prompts do not have the 10 tokens asked for, but 9 to 10|counts 30 input tokens where its tokenizer gave 29"},
		} {
			sent := prompts(3)
			for i, length := range test.lengths {
				sent[i].Tokens = length
			}
			o, err := client.Round(t.Context(), RoundSpec{Prompts: sent, Concurrency: 1, OutputTokens: 2, InputTokens: 10})
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(o.Notes, "\n")
			for want := range strings.SplitSeq(test.want, "|") {
				if !strings.Contains(notes, want) || test.want == "" && strings.Contains(notes, "input tokens") {
					t.Errorf("lengths %v: notes %q", test.lengths, o.Notes)
				}
			}
		}
	})
}
