package sim

import (
	"encoding/binary"
	"hash/fnv"
	"strings"
)

// A token is a word of the simulation's own vocabulary, so that the number of
// tokens of a text can be counted by anyone.

var syllables = strings.Fields("ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu za bre cli dro fla gri sto tru pla sni")

// word returns the token at a position of the answer to a prompt. It depends on
// nothing else, so that every healthy configuration answers alike.
func word(prompt uint64, position int) string {
	h := mix64(prompt + uint64(position)*0x9e3779b97f4a7c15)
	n := uint64(len(syllables))
	out := " " + syllables[h%n] + syllables[h/n%n]
	if h>>60 == 0 {
		out += syllables[h/n/n%n]
	}
	return out
}

// corruptedWord is what comes instead of every third token when stores were torn.
func corruptedWord(prompt uint64, position int) string {
	if position%3 == 1 {
		return word(^prompt, position)
	}
	return word(prompt, position)
}

// mix64 is the finalizer of splitmix64: it spreads the bits of a counter.
func mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// unit turns a hash into a number from 0 to 1.
func unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }

// hashOf digests strings in order.
func hashOf(parts ...string) uint64 {
	h := fnv.New64a()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return mix64(h.Sum64())
}

// prompt is what a request asks, as the server sees it.
type prompt struct {
	tokens int
	hash   uint64
	blocks []uint64 // a digest of every prefix of whole cache blocks
}

// cacheBlock is the number of tokens that the prefix cache shares at once.
const cacheBlock = 16

func promptOfText(text string) prompt {
	words := strings.Fields(text)
	return newPrompt(len(words), func(i int) string { return words[i] })
}

func promptOfIDs(ids []int) prompt {
	return newPrompt(len(ids), func(i int) string {
		return string(binary.AppendVarint(nil, int64(ids[i])))
	})
}

func newPrompt(n int, token func(int) string) prompt {
	p := prompt{tokens: max(n, 1)}
	h := fnv.New64a()
	for i := range n {
		h.Write([]byte(token(i)))
		h.Write([]byte{0})
		if (i+1)%cacheBlock == 0 {
			p.blocks = append(p.blocks, h.Sum64())
		}
	}
	p.hash = mix64(h.Sum64())
	return p
}

// naturalLength is where the answer would end by itself.
func (p prompt) naturalLength() int { return 120 + int(mix64(p.hash^1)%600) }
