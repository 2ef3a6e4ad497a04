package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Fitted returns the prompts of a round as [Dataset.Prompts] does, each of the
// exact length that its dataset asks for by the tokenizer's count. Prompts of a
// file have their own lengths and stay as they are. With one tokenizer the result
// is the same each time.
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
			prompts[i].Text, err = fit(ctx, tokenizer, head, d.own(point, round, i), d.spec.InputTokens, d.spec.Length())
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
		group.Go(func() (err error) {
			prefixes[i], err = fit(ctx, tokenizer, "", d.prefix(point, round, i), d.spec.PrefixTokens, d.spec.PrefixTokens)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("workload %s: prefixes of %d tokens: %w", d.spec.Workload, d.spec.PrefixTokens, err)
	}
	return prefixes, nil
}

// fitAttempts bounds the counts for one prompt. Most words are one token, so two
// or three do.
const fitAttempts = 24

// fit makes a text of exactly target tokens that begins with head: words are
// added to its end, or taken from there, by as many tokens as it is off. A word
// that is too long for the last place gives way to the next one drawn.
func fit(ctx context.Context, tokenizer Tokenizer, head string, from *rand.PCG, first, target int) (string, error) {
	own := randomWords(from, first)
	count := 0
	for range fitAttempts {
		text := head + strings.Join(own, " ")
		var err error
		if count, err = tokenizer.Count(ctx, text); err != nil {
			return "", err
		}
		switch {
		case count == target:
			return text, nil
		case count > target:
			own = own[:max(len(own)-(count-target), 1)]
			if len(own) == 1 { // no shorter with this word, perhaps with another
				own = randomWords(from, 1)
			}
		default:
			own = append(own, randomWords(from, target-count)...)
		}
	}
	return "", fmt.Errorf("no text of %d tokens was found in %d attempts, the last one has %d", target, fitAttempts, count)
}
