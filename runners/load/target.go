package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Protocol is the API through which a server is measured. The words are those
// of a workload's endpoint.
type Protocol string

// Protocols.
const (
	OpenAICompletions Protocol = "completions" // POST /v1/completions
	OpenAIChat        Protocol = "chat"        // POST /v1/chat/completions
	// SGLangGenerate is SGLang's native POST /generate, with cumulative text or
	// (--incremental-streaming-output) incremental text.
	SGLangGenerate Protocol = "generate"
)

// path of the streaming endpoint below the server's root.
func (p Protocol) path() string {
	switch p {
	case OpenAICompletions:
		return "/v1/completions"
	case OpenAIChat:
		return "/v1/chat/completions"
	case SGLangGenerate:
		return "/generate"
	}
	return ""
}

// DialFunc opens a connection, with the meaning of [net.Dialer.DialContext].
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Target is the server to measure.
type Target struct {
	// BaseURL is the server's root, with or without a trailing /v1. Its host is
	// a literal address unless Address is given.
	BaseURL string
	// Address, an IP address and port, is dialled instead of the host of
	// BaseURL. [Pin] finds it for a host name.
	Address string
	// Model is the model id sent with each request; SGLangGenerate sends none.
	Model    string
	Protocol Protocol
	// Extra is merged into the body of each request, maps into maps; a nil
	// removes a field. It carries what only one kind of server takes, such as
	// cache_prompt=false of llama.cpp.
	Extra map[string]any
	// Header is added to each request: the authorization of a server that wants
	// one. It is never part of an error or a result.
	Header http.Header
	// Dial replaces the dialler: a tunnel, or a network in memory.
	Dial DialFunc
}

// Client measures one target. It is safe for concurrent use, though rounds
// that overlap disturb each other.
type Client struct {
	target  Target
	root    string // scheme and authority, no trailing slash
	url     string // of the streaming endpoint
	address string // literal address that is dialled
	dial    DialFunc
	// processor is the time that this process has used of all cores.
	processor func() time.Duration
}

// ErrNotLiteral is wrapped by the error of [New] for a host name: a name may
// stand for several addresses, and resolving it anew for each connection may
// reach another server or wait for a dead address family.
var ErrNotLiteral = errors.New("not a literal address")

// New returns a client for the target.
func New(target Target) (*Client, error) {
	if target.Protocol.path() == "" {
		return nil, fmt.Errorf("unknown protocol %q: expected %s, %s or %s",
			target.Protocol, OpenAICompletions, OpenAIChat, SGLangGenerate)
	}
	base, err := parseBase(target.BaseURL)
	if err != nil {
		return nil, err
	}
	address := target.Address
	if address == "" {
		address = authority(base)
	}
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("server %s: host %q is %w: use its IP address, or pin the name to one address first",
			base.Redacted(), address, ErrNotLiteral)
	}
	dial := target.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	root := base.Scheme + "://" + base.Host + base.Path
	return &Client{
		target: target, root: root, url: root + target.Protocol.path(), address: address, dial: dial,
		processor: processorTime,
	}, nil
}

// dialTimeout bounds a TCP connection attempt. An inference server is on this
// host or near it; longer means that nothing listens.
const dialTimeout = 5 * time.Second

// Address is the literal address, host:port, that every connection goes to.
func (c *Client) Address() string { return c.address }

// Pin returns the literal address, host:port, for the host of a base URL: the
// host itself when it is an IP address, else the first address of the name, in
// the resolver's order, that accepts a connection. A client of that address
// does not depend on the resolver again.
func Pin(ctx context.Context, baseURL string) (string, error) {
	return pin(ctx, baseURL, net.DefaultResolver.LookupNetIP, (&net.Dialer{Timeout: dialTimeout}).DialContext)
}

type lookupFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

func pin(ctx context.Context, baseURL string, lookup lookupFunc, dial DialFunc) (string, error) {
	base, err := parseBase(baseURL)
	if err != nil {
		return "", err
	}
	host := authority(base)
	if _, err := netip.ParseAddrPort(host); err == nil {
		return host, nil
	}
	addresses, err := lookup(ctx, "ip", base.Hostname())
	if err != nil {
		return "", fmt.Errorf("server %s: resolving the host name: %w", base.Redacted(), err)
	}
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return "", fmt.Errorf("server %s: %w", base.Redacted(), err)
	}
	var refused []error
	for _, address := range addresses {
		literal := net.JoinHostPort(address.Unmap().String(), port)
		connection, err := dial(ctx, "tcp", literal)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		connection.Close()
		return literal, nil
	}
	return "", fmt.Errorf("server %s: none of its %d addresses accepts a connection: %w",
		base.Redacted(), len(addresses), errors.Join(refused...))
}

// parseBase checks a base URL and strips what is not part of the root.
func parseBase(raw string) (*url.URL, error) {
	base, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("server address: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" {
		return nil, fmt.Errorf("server address %q: expected http://HOST:PORT", base.Redacted())
	}
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/v1")
	base.RawPath, base.RawQuery, base.Fragment = "", "", ""
	return base, nil
}

// authority is host:port of a URL, with the default port of its scheme.
func authority(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
