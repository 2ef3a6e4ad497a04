package load

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	"nocturne/runners"
)

// Prompt is the input of one request.
type Prompt struct {
	Text string
	// Tokens is its length by the server's tokenizer; 0 where that was not asked.
	Tokens int
}

// Datasets of a workload.
const (
	DatasetRandom       = "random"
	DatasetPrompts      = "prompts"
	DatasetSharedPrefix = "shared-prefix"
)

// WarmupRound is the number of the round that holds the warm-up requests;
// measured rounds count from 1.
const WarmupRound = 0

// DatasetSpec says what prompts a workload has.
type DatasetSpec struct {
	// Workload is its name, for messages.
	Workload string
	// Dataset is DatasetRandom, DatasetPrompts or DatasetSharedPrefix.
	Dataset string
	// File and its digest (sha256, may be empty) belong to DatasetPrompts.
	File, FileDigest string
	// InputTokens is the length of random prompts, and of what is a prompt's own
	// behind a shared prefix.
	InputTokens int
	// PrefixTokens is the length of each of so many Prefixes that the prompts of
	// DatasetSharedPrefix share in turn.
	PrefixTokens, Prefixes int
	// Requests and Warmup are the prompts of a round, and of the warm-up.
	Requests, Warmup int
	Seed             uint64
}

// Length is that of each prompt in tokens; 0 when they have their own.
func (s DatasetSpec) Length() int {
	if s.Dataset == DatasetPrompts {
		return 0
	}
	return s.PrefixTokens + s.InputTokens
}

func (s DatasetSpec) check() error {
	switch s.Dataset {
	case DatasetRandom, DatasetSharedPrefix:
		if s.InputTokens < 1 {
			return fmt.Errorf("dataset %s needs input_tokens of at least 1, not %d", s.Dataset, s.InputTokens)
		}
		if s.Dataset == DatasetSharedPrefix && (s.PrefixTokens < 1 || s.Prefixes < 1) {
			return fmt.Errorf("dataset %s needs prefixes of at least 1 token, and at least 1 of them, not %d and %d", s.Dataset, s.PrefixTokens, s.Prefixes)
		}
		return nil
	case DatasetPrompts:
		return nil
	}
	return fmt.Errorf("unknown dataset %q: expected %s, %s or %s", s.Dataset, DatasetRandom, DatasetPrompts, DatasetSharedPrefix)
}

// Dataset makes the prompts of a workload.
//
// Every prompt is a function of the campaign's seed, the load point, the round
// and its place in the round: the trials of a campaign send the same prompts,
// and no two requests of one launch do. Each prompt begins with words of its own,
// so that no request finds another one's prefix in the server's cache, unless
// sharing is what the dataset is for.
//
//   - random: common English words, about one token each; the first of them are
//     the prompt's own. The server's count of input tokens is what is reported.
//   - shared-prefix: words as well, of which the first are the same for every
//     prompt of a group. Each round has new prefixes, so that every round finds the
//     cache as empty of them as the last did.
//   - prompts: the prompts of the file, in an order drawn from the seed. All
//     rounds and load points send the same ones, those that come first in that
//     order (from the start again when the file has too few), so that rounds
//     repeat one another; within a round they are shuffled. Ahead of each stands
//     a line of 13 letters and digits of its own, about eight tokens.
type Dataset struct {
	spec DatasetSpec
	file []string // prompts of the file, in the order of the seed
}

// OpenDataset prepares the prompts of a workload.
func OpenDataset(workload runners.Workload) (*Dataset, error) {
	return NewDataset(DatasetSpec{
		Workload: workload.Name, Dataset: workload.Dataset, File: workload.File, FileDigest: workload.FileDigest,
		InputTokens: workload.InputTokens, PrefixTokens: workload.PrefixTokens, Prefixes: workload.Prefixes, Requests: workload.Requests, Warmup: workload.Warmup, Seed: workload.Seed,
	})
}

// NewDataset prepares prompts; it reads and checks the file of dataset "prompts",
// and its digest when there is one.
func NewDataset(spec DatasetSpec) (*Dataset, error) {
	d := &Dataset{spec: spec}
	err := spec.check()
	if err == nil && spec.Dataset == DatasetPrompts {
		if d.file, err = readPrompts(spec.File, spec.FileDigest); err == nil {
			shuffle(d.file, source("order", spec.Seed))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", spec.Workload, err)
	}
	return d, nil
}

// Spec is what the dataset was made from.
func (d *Dataset) Spec() DatasetSpec { return d.spec }

// Prompts returns the prompts of a round at a load point (its index): as many
// as the workload has requests, or warm-up requests for [WarmupRound].
func (d *Dataset) Prompts(point, round int) []Prompt {
	prompts := make([]Prompt, d.count(round))
	for i := range prompts {
		own := d.own(point, round, i)
		switch d.spec.Dataset {
		case DatasetPrompts:
			prompts[i].Text = nonce(own) + "\n" + d.file[i%len(d.file)]
		case DatasetSharedPrefix:
			prefix := randomText(d.prefix(point, round, i), d.spec.PrefixTokens)
			prompts[i].Text = prefix + " " + randomText(own, d.spec.InputTokens)
		default:
			prompts[i].Text = randomText(own, d.spec.InputTokens)
		}
	}
	d.shuffle(prompts, point, round)
	return prompts
}

func (d *Dataset) count(round int) int {
	if round == WarmupRound {
		return d.spec.Warmup
	}
	return d.spec.Requests
}

// own generates what is a prompt's own, and prefix what it shares.
func (d *Dataset) own(point, round, i int) *rand.PCG {
	return source("prompt", d.spec.Seed, uint64(point), uint64(round), uint64(i))
}

func (d *Dataset) prefix(point, round, i int) *rand.PCG {
	return source("prefix", d.spec.Seed, uint64(point), uint64(round), uint64(i%d.spec.Prefixes))
}

func (d *Dataset) shuffle(prompts []Prompt, point, round int) {
	shuffle(prompts, source("shuffle", d.spec.Seed, uint64(point), uint64(round)))
}

// source is a generator for one purpose and place. PCG is fixed by its
// definition, so a campaign that goes on under a newer build sends the same.
func source(purpose string, place ...uint64) *rand.PCG {
	encoded := append([]byte(purpose), 0)
	for _, n := range place {
		encoded = binary.BigEndian.AppendUint64(encoded, n)
	}
	sum := sha256.Sum256(encoded)
	return rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16]))
}

// shuffle is Fisher and Yates's, spelled out because the standard library does
// not promise the order that its own yields for a seed.
func shuffle[T any](items []T, from *rand.PCG) {
	for i := len(items) - 1; i > 0; i-- {
		j := int(from.Uint64() % uint64(i+1))
		items[i], items[j] = items[j], items[i]
	}
}

//go:embed words.txt
var wordList string

// words are 512 short common words. With nine bits a word, eight of them carry
// the 64 bits that tell prompts apart.
var words = strings.Fields(wordList)

func randomText(from *rand.PCG, count int) string {
	return strings.Join(randomWords(from, count), " ")
}

func randomWords(from *rand.PCG, count int) []string {
	drawn := make([]string, count)
	for i := range drawn {
		drawn[i] = words[from.Uint64()%uint64(len(words))]
	}
	return drawn
}

// nonce is 64 bits as 13 letters and digits.
func nonce(from *rand.PCG) string {
	encoded := base32.StdEncoding.WithPadding(base32.NoPadding).
		EncodeToString(binary.BigEndian.AppendUint64(nil, from.Uint64()))
	return strings.ToLower(encoded)
}
