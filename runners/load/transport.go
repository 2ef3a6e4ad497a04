package load

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// connections hands out connections that were opened ahead of need, then opens
// further ones.
type connections struct {
	dial    DialFunc
	address string

	mu     sync.Mutex
	ready  []net.Conn
	setups []time.Duration // how long each connection took to open
}

// warm opens n connections at once, so that no request of a round waits for
// one. It stops at the first error.
func (c *connections) warm(ctx context.Context, n int) error {
	opened := make(chan error, n)
	for range n {
		go func() {
			connection, err := c.open(ctx)
			if err == nil {
				c.mu.Lock()
				c.ready = append(c.ready, connection)
				c.mu.Unlock()
			}
			opened <- err
		}()
	}
	var first error
	for range n {
		if err := <-opened; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// open dials, and records how long that took.
func (c *connections) open(ctx context.Context) (net.Conn, error) {
	start := time.Now()
	connection, err := c.dial(ctx, "tcp", c.address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setups = append(c.setups, time.Since(start))
	return connection, nil
}

// take is the dialler of the transport: whatever host it is asked for, it goes
// to the one literal address.
func (c *connections) take(ctx context.Context, _, _ string) (net.Conn, error) {
	c.mu.Lock()
	if last := len(c.ready) - 1; last >= 0 {
		connection := c.ready[last]
		c.ready = c.ready[:last]
		c.mu.Unlock()
		return connection, nil
	}
	c.mu.Unlock()
	return c.open(ctx)
}

// times returns how long each connection took to open.
func (c *connections) times() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.setups)
}

// close closes what was opened and never taken.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, connection := range c.ready {
		connection.Close()
	}
	c.ready = nil
}

// readBufferBytes is the read buffer of a connection: a burst of a few dozen
// events arrives in one system call.
const readBufferBytes = 16 << 10

// transport returns an HTTP/1.1 transport over the connections: no proxy, no
// compression, one request at a time on a connection, which stays open for the
// next one.
func (c *connections) transport(keep int) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:         c.take,
		DisableCompression:  true,
		DisableKeepAlives:   keep == 0,
		MaxIdleConnsPerHost: keep,
		ReadBufferSize:      readBufferBytes,
		Protocols:           &protocols,
	}
}
