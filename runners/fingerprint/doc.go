// Package fingerprint reads what a machine is and what runs on it.
//
// # Model
//
// A fingerprint has three parts with different lives. The hardware (GPUs, their
// links, PCIe, CPU) changes with a screwdriver and has a key; the stack (driver,
// CUDA, kernel, and what the server adds: NCCL, its version, the model) changes
// with an upgrade and has a key; settings (power limits, ECC, IOMMU, the size of
// /dev/shm) change with a reboot or a command, are stored and compared, and are
// in no key. So two results compare when their keys are equal, and a difference
// in settings is a warning.
//
// [HardwareKey] does not change with a reboot, with the order of the GPUs, with
// the PCIe generation that an idle link falls back to, or with ECC. P2P
// capability depends on the driver as much as on the hardware, and is a setting.
//
// # Reading
//
// Everything comes through a [Source]: files of the machine and the output of
// nvidia-smi, which is there wherever the driver is and needs no cgo. What cannot
// be read is named in the fingerprint's Unreadable with the reason, never
// guessed: a machine without a GPU, a container without /sys and a driver that
// hangs all give a fingerprint.
package fingerprint
