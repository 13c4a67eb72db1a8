// Copyright: (c) 2026, gpufleet.dra contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

// Package nvfm stands in for github.com/NVIDIA/go-nvfm v0.1.0, the Fabric Manager binding, which Go's module proxy does not serve.
//
// It declares what NVIDIA's DRA driver names, and every call fails. It matters only with the driver's FabricManagerPartitioning feature gate,
// which therefore cannot be used in a sandbox.
package nvfm

// Return is the result of a call.
type Return int

// Results that the driver distinguishes.
const (
	SUCCESS Return = 0

	notInThisBuild Return = 1
)

func (r Return) String() string { return "fabric manager is not in this build" }

func (r Return) Error() string { return r.String() }

// FabricPartitionId numbers a partition.
type FabricPartitionId uint32

// GpuInfo describes one GPU of a partition.
type GpuInfo struct {
	PhysicalId          uint32
	Uuid                [64]int8
	PciBusId            [32]int8
	NumNvLinksAvailable uint32
	MaxNumNvLinks       uint32
	NvlinkLineRateMBps  uint32
}

// PartitionInfo describes one partition.
type PartitionInfo struct {
	PartitionId FabricPartitionId
	IsActive    uint32
	NumGpus     uint32
	GpuInfo     [16]GpuInfo
}

// FabricPartitionList holds the partitions of a fabric.
type FabricPartitionList struct {
	NumPartitions uint32
	PartitionInfo [64]PartitionInfo
}

// LibraryOption configures New.
type LibraryOption func()

// ConnectOption configures Connect.
type ConnectOption func()

// WithLibraryPath names the library to load.
func WithLibraryPath(string) LibraryOption { return nil }

// WithUnixSocket names the socket to connect to.
func WithUnixSocket(string) ConnectOption { return nil }

// WithAddress names the address to connect to.
func WithAddress(string) ConnectOption { return nil }

// WithTimeoutMs bounds the connection attempt.
func WithTimeoutMs[T any](T) ConnectOption { return nil }

// Handle is a connection to a fabric manager.
type Handle interface {
	GetSupportedFabricPartitions() (FabricPartitionList, Return)
	ActivateFabricPartition(FabricPartitionId) Return
	DeactivateFabricPartition(FabricPartitionId) Return
	Disconnect() Return
}

// Interface is the library.
type Interface interface {
	Init() Return
	Shutdown() Return
	Connect(...ConnectOption) (Handle, Return)
}

type absent struct{}

// New returns a library whose every call fails.
func New(...LibraryOption) Interface { return absent{} }

func (absent) Init() Return { return notInThisBuild }

func (absent) Shutdown() Return { return notInThisBuild }

func (absent) Connect(...ConnectOption) (Handle, Return) { return absent{}, notInThisBuild }

func (absent) GetSupportedFabricPartitions() (FabricPartitionList, Return) {
	return FabricPartitionList{}, notInThisBuild
}

func (absent) ActivateFabricPartition(FabricPartitionId) Return { return notInThisBuild }

func (absent) DeactivateFabricPartition(FabricPartitionId) Return { return notInThisBuild }

func (absent) Disconnect() Return { return notInThisBuild }
