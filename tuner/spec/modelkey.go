package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// modelFlags name the model, and the draft, of the known servers.
var modelFlags = []string{"--model-path", "--model", "-m", "--speculative-draft-model-path", "--spec-draft-model", "-md", "--model-draft"}

// ggufHead is how much of a GGUF file is read: its metadata, which holds shape
// and quantization, stands at the beginning.
const ggufHead = 1 << 20

// modelDigests are digests of the configurations of the local models that the
// command names: config.json and the quantization configuration of a folder, the head of a
// GGUF file. A model that is only a name adds nothing.
func modelDigests(t launchTemplate) []string {
	var digests []string
	paths := []string{}
	for i, arg := range t.args {
		for _, flag := range modelFlags {
			if value, ok := strings.CutPrefix(arg, flag+"="); ok {
				paths = append(paths, value)
			} else if arg == flag && i+1 < len(t.args) {
				paths = append(paths, t.args[i+1])
			}
		}
	}
	if t.speculation != nil && t.speculation.DraftModel != "" {
		paths = append(paths, t.speculation.DraftModel)
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(t.directory, path)
		}
		for _, file := range []string{path, filepath.Join(path, "config.json"), filepath.Join(path, "hf_quant_config.json")} {
			if digest, ok := headDigest(file); ok {
				digests = append(digests, digest)
			}
		}
	}
	return digests
}

func headDigest(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	file, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(file, ggufHead)); err != nil {
		return "", false
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), true
}
