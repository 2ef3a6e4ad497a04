package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// modelFlags name the model of the known servers, and draftFlags the draft.
var (
	modelFlags = []string{"--model-path", "--model", "-m"}
	draftFlags = []string{"--speculative-draft-model-path", "--speculative-draft-model", "--spec-draft-model", "-md", "--model-draft"}
)

// modelsOf lists the models that a command names, by a flag or behind the word
// serve.
func modelsOf(args []string) []string {
	head := commandHead(args)
	var models []string
	for i, arg := range args[:head] {
		if serves := arg == "serve" || filepath.Base(arg) == "trtllm-serve"; serves && i+1 < head {
			models = append(models, args[i+1])
		}
	}
	return append(models, flagValues(args[head:], modelFlags)...)
}

// flagValues lists the values of some flags, in either spelling.
func flagValues(args, flags []string) []string {
	var values []string
	for i, arg := range args {
		flag, value, pair := strings.Cut(arg, "=")
		switch {
		case !slices.Contains(flags, normalFlag(flag)):
		case pair:
			values = append(values, value)
		case i+1 < len(args):
			values = append(values, args[i+1])
		}
	}
	return values
}

// modelHead is how much of a model's file is read: the metadata of a GGUF file,
// which holds shape and quantization, stands at its beginning.
const modelHead = 1 << 20

// modelDigests are digests of the configurations of the local models that the
// command names: config.json and the quantization configuration of a folder,
// the head of a GGUF file. A model that is only a name adds nothing.
func modelDigests(t launchTemplate) []string {
	paths := slices.Concat(modelsOf(t.args), flagValues(t.args, draftFlags))
	if t.speculation != nil && t.speculation.DraftModel != "" {
		paths = append(paths, t.speculation.DraftModel)
	}
	digests := []string{}
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
	slices.Sort(digests)
	return slices.Compact(digests)
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
	defer func() { _ = file.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(file, modelHead)); err != nil {
		return "", false
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), true
}
