package load

import (
	"encoding/json"
	"fmt"
	"strings"
)

// FailureKind says how a request failed. Each HTTP status has a kind of its own,
// such as "http_500"; see [FailedStatus].
type FailureKind string

// Kinds of failed requests.
const (
	// FailedConnect: no connection, or none that took the request.
	FailedConnect FailureKind = "connect"
	// FailedStream: an error event within a stream of status 200.
	FailedStream FailureKind = "stream_error"
	// FailedCutOff: the stream ended without its terminal marker.
	FailedCutOff FailureKind = "cut_off"
	// FailedMalformed: the answer is no event stream, or an event is not JSON of
	// the protocol.
	FailedMalformed FailureKind = "malformed"
	// FailedAborted: the server gave the request up (finish reason abort).
	FailedAborted FailureKind = "aborted"
	// FailedEmpty: a complete stream without a single token.
	FailedEmpty FailureKind = "no_tokens"
	// unfinished marks the details of requests that a cancelled round did not
	// come to the end of. They are no failures, and counted nowhere.
	unfinished FailureKind = "unfinished"
)

var errUnfinished = &RequestError{Kind: unfinished, Message: "the round was ended before this request"}

// FailedStatus is the kind of an answer with an HTTP status other than 200.
func FailedStatus(code int) FailureKind { return FailureKind(fmt.Sprintf("http_%d", code)) }

// RequestError is why one request did not complete.
type RequestError struct {
	Kind FailureKind
	// Message says what the server or the network answered.
	Message string
	cause   error
}

func (e *RequestError) Error() string { return string(e.Kind) + ": " + e.Message }

// Unwrap returns the network error behind the failure, if there is one.
func (e *RequestError) Unwrap() error { return e.cause }

// FailureCount counts the failures of one kind.
type FailureCount struct {
	Count int `json:"count"`
	// First is the message of the first one.
	First string `json:"first"`
}

// maxMessageBytes keeps a server's error page from filling the record.
const maxMessageBytes = 500

// excerpt shortens what a server said to one line that fits into a message.
func excerpt(text []byte) string {
	shown := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), maxMessageBytes)]), "")), " ")
	if len(text) > maxMessageBytes {
		shown += " ..."
	}
	return shown
}

// errorText finds the message in the error value of an event or a body, which
// is a string or an object with a message.
func errorText(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return excerpt([]byte(text))
	}
	var object struct {
		Message string          `json:"message"`
		Error   json.RawMessage `json:"error"`
	}
	if json.Unmarshal(raw, &object) == nil {
		if object.Message != "" {
			return excerpt([]byte(object.Message))
		}
		if len(object.Error) > 0 {
			return errorText(object.Error)
		}
	}
	return excerpt(raw)
}
