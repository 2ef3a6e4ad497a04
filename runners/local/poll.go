package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"nocturne/runners/servers"
)

const (
	// Health is asked this often while the server answers at once that it is not
	// ready. The first questions come faster: small servers load in no time.
	firstPoll, lastPoll = 2 * time.Millisecond, 50 * time.Millisecond
	// pageTimeout bounds the pages on which a server tells of itself. They are
	// answered by every scheduler of it.
	pageTimeout = 30 * time.Second
	// maxPage bounds what is read of one.
	maxPage = 16 << 20
)

// pages asks the server for its pages, always at the one literal address.
type pages struct {
	root   string
	header http.Header
	client *http.Client
}

func newPages(address string, header http.Header) *pages {
	var dialer net.Dialer
	return &pages{
		root: "http://" + address, header: header,
		client: &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "tcp", address)
			},
			DisableKeepAlives: true,
		}},
	}
}

// do returns status and body of a page.
func (p *pages) do(ctx context.Context, method, path string, limit time.Duration) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, p.root+path, nil)
	if err != nil {
		return 0, nil, err
	}
	for name, values := range p.header {
		request.Header[name] = values
	}
	response, err := p.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	return response.StatusCode, body, err
}

// get reads a page.
func (p *pages) get(ctx context.Context, path string) ([]byte, error) {
	status, body, err := p.do(ctx, http.MethodGet, path, pageTimeout)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s answered %d", path, status)
	}
	return body, nil
}

// awaitHealth asks until the server calls itself ready.
func (p *pages) awaitHealth(ctx context.Context, ready servers.Ready) error {
	wait := firstPoll
	path := 0
	for {
		status, _, err := p.do(ctx, http.MethodGet, ready.Paths[path], ready.Timeout)
		switch {
		case err == nil && status == ready.Status:
			return nil
		case err == nil && status == http.StatusNotFound && path+1 < len(ready.Paths):
			path++
			continue
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		wait = min(wait*3/2, lastPoll)
	}
}

// models lists the ids that the server serves.
func (p *pages) models(ctx context.Context, path string) ([]string, error) {
	status, body, err := p.do(ctx, http.MethodGet, path, pageTimeout)
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s answered %d", path, status)
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("%s is no list of models: %w", path, err)
	}
	if len(list.Data) == 0 {
		return nil, errors.New(path + " lists no model")
	}
	ids := make([]string, len(list.Data))
	for i, model := range list.Data {
		ids[i] = model.ID
	}
	return ids, nil
}

// flush empties the prefix cache, and says what came of it in a word for the
// record: "flushed", or why not.
func (p *pages) flush(ctx context.Context, flush *servers.Flush) string {
	if flush == nil {
		return "not available"
	}
	for attempt := 1; ; attempt++ {
		status, body, err := p.do(ctx, flush.Method, flush.Path, pageTimeout)
		switch {
		case err != nil:
			return err.Error()
		case status == flush.Refused && attempt < maxFlushes:
			// The last request has been answered but not yet taken off the books.
			if sleep(ctx, lastPoll) != nil {
				return context.Cause(ctx).Error()
			}
			continue
		case status != http.StatusOK:
			return fmt.Sprintf("%s answered %d", flush.Path, status)
		case !succeeded(body, flush.Success):
			return fmt.Sprintf("%s answered that it could not", flush.Path)
		}
		return flushed
	}
}

const (
	flushed    = "flushed"
	maxFlushes = 20
)

// succeeded reads the field of an answer that says whether it worked.
func succeeded(body []byte, field string) bool {
	if field == "" {
		return true
	}
	var answer map[string]any
	if json.Unmarshal(body, &answer) != nil {
		return true // newer servers answer with an empty body
	}
	success, given := answer[field].(bool)
	return !given || success
}

// sleep waits, or returns why it was not allowed to.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
