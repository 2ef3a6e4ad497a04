package nccl_test

import (
	"fmt"
	"maps"
	"slices"

	"nocturne/nccl"
)

// A wish on its way from a person's text to the environment of a server.
func Example() {
	typed := map[string]string{
		"NCCL_ALGO": "tree", "NCCL_PROTO": "ll", "NCCL_BUFFSIZE": "16MiB", "NCCL_NTHREADS": "512", "NCCL_P2P_LEVEL": "SYS",
	}
	values := map[string]string{}
	for name, text := range typed {
		value, err := nccl.Canonicalize(name, text, nccl.Reading{})
		if err != nil {
			fmt.Println(err)
			return
		}
		values[name] = value
	}
	fmt.Println("NCCL_BUFFSIZE is", values["NCCL_BUFFSIZE"])

	machine := nccl.Context{Version: nccl.Version{Major: 2, Minor: 28, Patch: 9}, NVLink: nccl.No, Nodes: 1}
	acting, notes, err := nccl.Canonical(machine, values)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, note := range notes {
		fmt.Println(note)
	}
	environment, err := nccl.Render(machine, acting)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		fmt.Printf("%s=%s\n", name, environment[name])
	}

	_, err = nccl.Canonicalize("NCCL_P2P_LEVEL", "sys", nccl.Reading{})
	fmt.Println(err)
	// Output:
	// NCCL_BUFFSIZE is 16777216
	// NCCL_BUFFSIZE=16777216 is left out: NCCL_BUFFSIZE is the buffer of protocol Simple; it only takes memory
	// NCCL_NTHREADS=512 is left out: 512 is the default of Ring and Tree, but for Ring with Simple on slow PCIe up to 2.30
	// NCCL_ALGO=ring,tree;allreduce:tree
	// NCCL_P2P_LEVEL=SYS
	// NCCL_PROTO=LL
	// NCCL_P2P_LEVEL: "sys" is not upper case, and NCCL then ignores it without a word; allowed: LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB or SYS; write SYS
}
