package sqlstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"nocturne/store"
)

// instant scans a time: a timestamp, or an integer of microseconds. NULL leaves
// it zero.
type instant struct{ to *time.Time }

// Scan implements sql.Scanner.
func (i instant) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*i.to = time.Time{}
	case time.Time:
		*i.to = v.UTC()
	case int64:
		*i.to = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time is stored as %T", value)
	}
	return nil
}

// optionalInstant scans a time that may be NULL.
type optionalInstant struct{ to **time.Time }

// Scan implements sql.Scanner.
func (i optionalInstant) Scan(value any) error {
	if value == nil {
		*i.to = nil
		return nil
	}
	*i.to = new(time.Time)
	return instant{*i.to}.Scan(value)
}

// raw scans an opaque JSON document; NULL becomes nil. PostgreSQL keeps the
// meaning of a document, not its text: Export brings it to the canonical form.
type raw struct{ to *json.RawMessage }

// Scan implements sql.Scanner.
func (r raw) Scan(value any) error {
	data, err := jsonBytes(value)
	*r.to = slices.Clone(data) // the driver uses its bytes again
	return err
}

// decoded scans a JSON document into a value; NULL leaves it as it is.
type decoded struct{ to any }

// Scan implements sql.Scanner.
func (d decoded) Scan(value any) error {
	data, err := jsonBytes(value)
	if err != nil || data == nil {
		return err
	}
	return json.Unmarshal(data, d.to)
}

func jsonBytes(value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("a JSON document is stored as %T", value)
}

// documentOf returns the parameter for an opaque JSON document. An absent one
// and a JSON null are both NULL.
func documentOf(record, field string, document json.RawMessage) (any, error) {
	if len(document) == 0 {
		return nil, nil
	}
	data, err := canonical(document)
	if err != nil {
		return nil, &store.InvalidError{Record: record, Field: field, Reason: err.Error()}
	}
	if string(data) == "null" {
		return nil, nil
	}
	return string(data), nil
}

// jsonOf returns the parameter for a value kept as JSON; a nil pointer, slice or
// map is NULL. The value has passed checkFinite.
func jsonOf(value any) (any, error) {
	data, err := marshal(value)
	if err != nil {
		return nil, err
	}
	if string(data) == "null" {
		return nil, nil
	}
	// Most values have nothing that PostgreSQL refuses or changes (NUL characters,
	// the sign of zero), and points are large.
	if bytes.Contains(data, []byte(`\u0000`)) || bytes.Contains(data, []byte("-0")) {
		if data, err = canonical(data); err != nil {
			return nil, err
		}
	}
	return string(data), nil
}

func marshal(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// canonical returns the one text of a JSON document that both databases give
// back: without spaces, keys sorted, numbers in one form each, and without what
// PostgreSQL cannot hold in a text (NUL characters become U+FFFD).
func canonical(document []byte) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("is not one JSON document")
	}
	value, err := canonicalValue(value)
	if err != nil {
		return nil, err
	}
	return marshal(value)
}

func canonicalValue(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case string:
		return text(v), nil
	case json.Number:
		return canonicalNumber(v)
	case []any:
		for i := range v {
			if v[i], err = canonicalValue(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for key, element := range v {
			if clean[text(key)], err = canonicalValue(element); err != nil {
				return nil, err
			}
		}
		return clean, nil
	}
	return value, nil
}

// canonicalNumber keeps integers of 64 bits exactly; other numbers are floats.
func canonicalNumber(number json.Number) (any, error) {
	if i, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(number.String(), 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(number.String(), 64)
	if err != nil {
		return nil, fmt.Errorf("has the number %s, which is beyond the range of a float", number)
	}
	// PostgreSQL writes 1e5 as 100000: the same number must not be an integer
	// here and a float there.
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	return f, nil
}

// text returns a text that both databases can hold: valid UTF-8 without NUL.
// Logs of servers, of which failures quote lines, have both.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// optional returns the parameter for a time that may be nil.
func (s *Store) optional(t *time.Time) any {
	if t == nil {
		return nil
	}
	return s.dialect.Instant(*t)
}

// orNow returns the parameter for a time that the store sets when it is zero.
func (s *Store) orNow(t time.Time) any {
	if t.IsZero() {
		return expression(s.dialect.Now)
	}
	return s.dialect.Instant(t)
}

// fieldOf returns a text field of a JSON object, empty without one.
func fieldOf(document json.RawMessage, field string) string {
	var object map[string]json.RawMessage
	var value string
	if json.Unmarshal(document, &object) != nil || json.Unmarshal(object[field], &value) != nil {
		return ""
	}
	return text(value)
}

// nullable returns the parameter for a number that may be nil.
func nullable(number *float64) any {
	if number == nil {
		return nil
	}
	return *number
}
