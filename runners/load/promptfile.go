package load

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxPromptErrors is how many faulty lines of a prompts file are named.
const maxPromptErrors = 10

// readPrompts reads a prompts file: JSON lines, each with a "prompt" or in the
// ShareGPT shape ("conversations", whose first message of the human counts), or
// one JSON array of such objects. Its digest is checked when one is given.
func readPrompts(path, digest string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the prompts: %w", err)
	}
	if sum := sha256.Sum256(content); digest != "" && !sameDigest(digest, sum[:]) {
		return nil, fmt.Errorf("prompts file %s has changed: its sha256 is %x, the campaign was begun with %s", path, sum, digest)
	}
	return parsePrompts(path, content)
}

// sameDigest compares a digest in hexadecimal, with or without "sha256:".
func sameDigest(digest string, sum []byte) bool {
	return strings.EqualFold(strings.TrimPrefix(digest, "sha256:"), hex.EncodeToString(sum))
}

func parsePrompts(path string, content []byte) ([]string, error) {
	var prompts []string
	var faults []error
	note := func(line int, text string, err error) bool {
		switch {
		case errors.Is(err, errNoPrompt):
		case err != nil:
			faults = append(faults, fmt.Errorf("%s:%d: %w", path, line, err))
		default:
			prompts = append(prompts, text)
		}
		return len(faults) < maxPromptErrors
	}
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	if array := skipSpace(content); len(array) > 0 && array[0] == '[' {
		eachElement(content, note)
	} else {
		eachLine(content, note)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if len(prompts) == 0 {
		return nil, fmt.Errorf("%s: no prompts: expected JSON lines with a \"prompt\" each, or the ShareGPT shape", path)
	}
	return prompts, nil
}

// eachLine reads JSON lines; empty ones are skipped.
func eachLine(content []byte, note func(line int, text string, err error) bool) {
	line := 0
	for raw := range bytes.Lines(content) {
		line++
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		text, err := promptOf(raw)
		if !note(line, text, err) {
			return
		}
	}
}

// eachElement reads a JSON array. A fault is told with the line on which its
// element begins.
func eachElement(content []byte, note func(line int, text string, err error) bool) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	lineAt := func(offset int64) int { return 1 + bytes.Count(content[:offset], []byte("\n")) }
	if _, err := decoder.Token(); err != nil {
		note(1, "", err)
		return
	}
	for decoder.More() {
		start := decoder.InputOffset()
		var raw json.RawMessage
		text, err := "", decoder.Decode(&raw)
		broken := err != nil
		if !broken {
			text, err = promptOf(raw)
		}
		line := 0
		if err != nil && !errors.Is(err, errNoPrompt) {
			// The element begins after the comma and space that follow the last one.
			blank := len(content[start:]) - len(bytes.TrimLeft(content[start:], ", \t\r\n"))
			line = lineAt(start + int64(blank))
		}
		if !note(line, text, err) || broken {
			return
		}
	}
	if _, err := decoder.Token(); err != nil {
		note(lineAt(decoder.InputOffset()), "", fmt.Errorf("the array does not end: %w", err))
		return
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		note(lineAt(decoder.InputOffset()), "", errors.New("more follows after the array"))
	}
}

// errNoPrompt marks a conversation that nobody began. Published ShareGPT files
// hold some; they are passed over.
var errNoPrompt = errors.New("a conversation without a message of the human")

// promptOf finds the prompt of one object.
func promptOf(raw []byte) (string, error) {
	var object struct {
		Prompt        *string `json:"prompt"`
		Conversations []struct {
			From  string `json:"from"`
			Value string `json:"value"`
		} `json:"conversations"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return "", fmt.Errorf("not an object with a \"prompt\" text or \"conversations\": %w", err)
	}
	if object.Prompt != nil {
		if strings.TrimSpace(*object.Prompt) == "" {
			return "", errors.New("the prompt is empty")
		}
		return *object.Prompt, nil
	}
	if object.Conversations == nil {
		return "", errors.New("neither \"prompt\" nor \"conversations\"")
	}
	for _, message := range object.Conversations {
		human := message.From == "human" || message.From == "user"
		if human && strings.TrimSpace(message.Value) != "" {
			return message.Value, nil
		}
	}
	return "", errNoPrompt
}
