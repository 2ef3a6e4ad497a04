package sim

// prefixCache remembers which prefixes of prompts were computed, in blocks of
// cacheBlock tokens, and forgets the oldest when it is full.
type prefixCache struct {
	enabled bool
	limit   int // blocks
	known   map[uint64]struct{}
	order   []uint64
}

func newPrefixCache(tokens int, enabled bool) *prefixCache {
	return &prefixCache{enabled: enabled, limit: max(1, tokens/cacheBlock), known: map[uint64]struct{}{}}
}

// admit returns how many tokens of the prompt are known, and learns the rest.
// The last token is always computed.
func (c *prefixCache) admit(p prompt) int {
	if !c.enabled {
		return 0
	}
	hits := 0
	for hits < len(p.blocks) {
		if _, ok := c.known[p.blocks[hits]]; !ok {
			break
		}
		hits++
	}
	for _, block := range p.blocks[hits:] {
		if len(c.order) >= c.limit {
			delete(c.known, c.order[0])
			c.order = c.order[1:]
		}
		c.known[block] = struct{}{}
		c.order = append(c.order, block)
	}
	return min(hits*cacheBlock, p.tokens-1)
}

func (c *prefixCache) flush() {
	clear(c.known)
	c.order = nil
}
