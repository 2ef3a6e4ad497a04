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
}

// Datasets of a workload.
const (
	DatasetRandom  = "random"
	DatasetPrompts = "prompts"
)

// WarmupRound is the number of the round that holds the warm-up requests;
// measured rounds count from 1.
const WarmupRound = 0

// Dataset makes the prompts of a workload.
//
// Every prompt is a function of the campaign's seed, the load point, the round
// and its place in the round: the trials of a campaign send the same prompts,
// and no two requests of one launch do. Each prompt begins with words of its own,
// so that no request finds another one's prefix in the server's cache.
//
//   - random: common English words, about one token each; the first of them are
//     the prompt's own. The server's count of input tokens is what is reported.
//   - prompts: the prompts of the file, in an order drawn from the seed. All
//     rounds and load points send the same ones, those that come first in that
//     order (from the start again when the file has too few), so that rounds
//     repeat one another; within a round they are shuffled. Ahead of each stands
//     a line of 13 letters and digits of its own, about eight tokens.
type Dataset struct {
	workload runners.Workload
	file     []string // prompts of the file, in the order of the seed
}

// OpenDataset prepares the prompts of a workload; it reads and checks the file
// of dataset "prompts", and its digest when the workload has one.
func OpenDataset(workload runners.Workload) (*Dataset, error) {
	d := &Dataset{workload: workload}
	switch workload.Dataset {
	case DatasetRandom:
		if workload.InputTokens < 1 {
			return nil, fmt.Errorf("workload %s: dataset random needs input_tokens of at least 1, not %d", workload.Name, workload.InputTokens)
		}
	case DatasetPrompts:
		texts, err := readPrompts(workload.File, workload.FileDigest)
		if err != nil {
			return nil, fmt.Errorf("workload %s: %w", workload.Name, err)
		}
		shuffle(texts, source("order", workload.Seed))
		d.file = texts
	default:
		return nil, fmt.Errorf("workload %s: unknown dataset %q: expected %s or %s", workload.Name, workload.Dataset, DatasetRandom, DatasetPrompts)
	}
	return d, nil
}

// Prompts returns the prompts of a round at a load point (its index): as many
// as the workload has requests, or warm-up requests for [WarmupRound].
func (d *Dataset) Prompts(point, round int) []Prompt {
	count := d.workload.Requests
	if round == WarmupRound {
		count = d.workload.Warmup
	}
	prompts := make([]Prompt, count)
	for i := range prompts {
		own := source("prompt", d.workload.Seed, uint64(point), uint64(round), uint64(i))
		if d.file == nil {
			prompts[i].Text = randomText(own, d.workload.InputTokens)
		} else {
			prompts[i].Text = nonce(own) + "\n" + d.file[i%len(d.file)]
		}
	}
	shuffle(prompts, source("shuffle", d.workload.Seed, uint64(point), uint64(round)))
	return prompts
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
	var text strings.Builder
	for i := range count {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(words[from.Uint64()%uint64(len(words))])
	}
	return text.String()
}

// nonce is 64 bits as 13 letters and digits.
func nonce(from *rand.PCG) string {
	encoded := base32.StdEncoding.WithPadding(base32.NoPadding).
		EncodeToString(binary.BigEndian.AppendUint64(nil, from.Uint64()))
	return strings.ToLower(encoded)
}
