package load

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Fitted returns the prompts of a round as [Dataset.Prompts] does, each of the
// length that its dataset asks for by the tokenizer's count, which the prompt
// holds: exactly, or as nearly as texts of that tokenizer come to it, since some
// have none of some length. Prompts of a file have their own lengths and stay as
// they are. With one tokenizer the result is the same each time.
func (d *Dataset) Fitted(ctx context.Context, point, round int, tokenizer Tokenizer) ([]Prompt, error) {
	if d.spec.Dataset == DatasetPrompts {
		return d.Prompts(point, round), nil
	}
	heads, err := d.fittedPrefixes(ctx, point, round, tokenizer)
	if err != nil {
		return nil, err
	}
	prompts := make([]Prompt, d.count(round))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(tokenizeAtOnce)
	for i := range prompts {
		head := ""
		if len(heads) > 0 {
			head = heads[i%len(heads)] + " "
		}
		group.Go(func() (err error) {
			prompts[i], err = fit(ctx, tokenizer, head, d.own(point, round, i), d.spec.InputTokens, d.spec.Length())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("workload %s: prompts of %d tokens: %w", d.spec.Workload, d.spec.Length(), err)
	}
	d.shuffle(prompts, point, round)
	return prompts, nil
}

// fittedPrefixes are the prefixes of a round; none for a dataset without.
func (d *Dataset) fittedPrefixes(ctx context.Context, point, round int, tokenizer Tokenizer) ([]string, error) {
	if d.spec.Dataset != DatasetSharedPrefix {
		return nil, nil
	}
	prefixes := make([]string, min(d.spec.Prefixes, d.count(round)))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(tokenizeAtOnce)
	for i := range prefixes {
		group.Go(func() error {
			prefix, err := fit(ctx, tokenizer, "", d.prefix(point, round, i), d.spec.PrefixTokens, d.spec.PrefixTokens)
			prefixes[i] = prefix.Text
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("workload %s: prefixes of %d tokens: %w", d.spec.Workload, d.spec.PrefixTokens, err)
	}
	return prefixes, nil
}

// fit makes a text that begins with head and has target tokens, or as nearly so as
// the tokenizer lets it: whole words as far as they go, then letters of the last
// one. The prompt holds the length that was reached.
func fit(ctx context.Context, tokenizer Tokenizer, head string, from *rand.PCG, first, target int) (Prompt, error) {
	f := &fitting{tokenizer: tokenizer, head: head, target: target, from: from}
	if done, err := f.byWords(ctx, first); done || err != nil {
		return f.nearest, err
	}
	err := f.byLetters(ctx)
	return f.nearest, err
}

// Bounds on the counts for one prompt. Most words are one token, so two or three
// counts do; fitWords is for tokenizers that are stranger than that.
const (
	fitWords = 16
	// fitOthers is how many other words are tried in the last place before one of
	// them is cut. A tokenizer of bytes or letters needs the cut, any other hardly
	// ever.
	fitOthers = 6
)

// fitting looks for a text of a length. Every text is the head and the first of
// the words, so that a longer one has more tokens, merges at its end aside.
type fitting struct {
	tokenizer Tokenizer
	head      string
	target    int
	from      *rand.PCG

	words []string
	// short is the greatest number of words known to be too few, long the least
	// known to be too many; 0: none.
	short, long int
	nearest     Prompt
}

// try counts a text, keeps it if none was nearer, and returns by how many tokens
// it is too long.
func (f *fitting) try(ctx context.Context, text string) (over int, err error) {
	count, err := f.tokenizer.Count(ctx, text)
	if err != nil {
		return 0, err
	}
	if f.nearest.Text == "" || distance(count, f.target) < distance(f.nearest.Tokens, f.target) {
		f.nearest = Prompt{Text: text, Tokens: count}
	}
	return count - f.target, nil
}

func distance(a, b int) int { return max(a-b, b-a) }

func (f *fitting) text(words int) string {
	return f.head + strings.Join(f.words[:words], " ")
}

// byWords looks for the number of words by the tokens that a word had between the
// last two counts. When one word is the difference between too short and too long,
// others are tried in its place.
func (f *fitting) byWords(ctx context.Context, first int) (done bool, err error) {
	words, others, perWord := first, 0, 1.0
	lastWords, lastOver := 0, 0
	for range fitWords {
		if missing := words - len(f.words); missing > 0 {
			f.words = append(f.words, randomWords(f.from, missing)...)
		}
		over, err := f.try(ctx, f.text(words))
		if over == 0 || err != nil {
			return true, err
		}
		if over > 0 {
			f.long = words
		} else if f.short = words; f.long <= words {
			f.long = 0
		}
		if lastWords > 0 && words != lastWords {
			perWord = max(float64(over-lastOver)/float64(words-lastWords), 1)
		}
		lastWords, lastOver = words, over
		words = max(words-int(math.Round(float64(over)/perWord)), f.short+1)
		if f.long == 0 {
			continue
		}
		words = min(words, max(f.long-1, f.short+1))
		if words == f.long {
			if others++; others > fitOthers {
				return false, nil
			}
			f.words[f.short] = randomWords(f.from, 1)[0]
		}
	}
	return false, nil
}

// byLetters cuts the last word of a text that is too long with it and too short
// without.
func (f *fitting) byLetters(ctx context.Context) error {
	if f.long == 0 {
		return nil
	}
	text, shortest := f.text(f.long), len(f.head)+1
	if f.short > 0 {
		shortest = len(f.text(f.short)) + 1
	}
	for longest := len(text) - 1; shortest <= longest; {
		length := (shortest + longest) / 2
		over, err := f.try(ctx, cut(text, length))
		switch {
		case over == 0 || err != nil:
			return err
		case over > 0:
			longest = length - 1
		default:
			shortest = length + 1
		}
	}
	return nil
}

// cut is the beginning of a text. A space at its end, which servers may drop, gives
// way to a letter.
func cut(text string, length int) string {
	if text[length-1] == ' ' {
		return text[:length-1] + "s"
	}
	return text[:length]
}
