package load

import "bytes"

// The functions here read single fields out of a JSON object without decoding
// it, which is what keeps an event cheap. They look for the bytes of a quoted
// key followed by a colon. That cannot be part of a string value: a quote inside
// a JSON string is escaped, so `"text":` there reads `\"text\":`. They see keys
// at every depth, so a caller asks only for keys whose meaning does not depend
// on it, or that it confirms by decoding.

// value returns what follows the first occurrence of the quoted key that has a
// value other than null, or nil.
func value(data, key []byte) []byte {
	for {
		i := bytes.Index(data, key)
		if i < 0 {
			return nil
		}
		data = data[i+len(key):]
		rest := skipSpace(data)
		if len(rest) == 0 || rest[0] != ':' {
			continue // the key's text as a string value
		}
		rest = skipSpace(rest[1:])
		if len(rest) > 0 && rest[0] != 'n' {
			return rest
		}
	}
}

// hasText tells whether any occurrence of the quoted key has a non-empty string
// as its value. Other values are passed over: "content" is an array within
// log-probabilities.
func hasText(data, key []byte) bool {
	for {
		data = value(data, key)
		if data == nil {
			return false
		}
		if len(data) >= 2 && data[0] == '"' && data[1] != '"' {
			return true
		}
	}
}

// number returns the non-negative integer that is the value of the quoted key.
// The last occurrence counts: the summary of a response follows its parts.
func number(data, key []byte) (int, bool) {
	for {
		i := bytes.LastIndex(data, key)
		if i < 0 {
			return 0, false
		}
		rest := skipSpace(data[i+len(key):])
		data = data[:i]
		if len(rest) == 0 || rest[0] != ':' {
			continue
		}
		if n, ok := digits(skipSpace(rest[1:])); ok {
			return n, true
		}
	}
}

// maxDigits keeps a hostile number from overflowing; no count is that long.
const maxDigits = 15

func digits(data []byte) (n int, ok bool) {
	for i, b := range data {
		if b < '0' || b > '9' {
			break
		}
		if i == maxDigits {
			return 0, false
		}
		n, ok = n*10+int(b-'0'), true
	}
	return n, ok
}

func skipSpace(data []byte) []byte {
	for len(data) > 0 && (data[0] == ' ' || data[0] == '\t' || data[0] == '\n' || data[0] == '\r') {
		data = data[1:]
	}
	return data
}
