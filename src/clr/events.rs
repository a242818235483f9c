//! Names and fields of the runtime's native events, which are missing from their metadata.
//!
//! Source: `ClrEtwAll.man` of the runtime, the fields verified byte by byte against the output of runtimes 3.1, 9 and 10. Symbols have no
//! version suffix, as in Microsoft's documentation.

use super::providers::{EVENT_PIPE_PROVIDER, PRIVATE_PROVIDER, RUNDOWN_PROVIDER, RUNTIME_PROVIDER, SAMPLE_PROFILER};
use crate::wire::{Reader, Utf16};

/// ID and name of an event, and its fields as [`manifest`](super::manifest) reads them; empty if they are unknown.
type Row = (u32, &'static str, &'static str);

/// The providers whose events have names here.
pub(super) const PROVIDERS: [&str; 5] = [RUNTIME_PROVIDER, RUNDOWN_PROVIDER, PRIVATE_PROVIDER, SAMPLE_PROFILER, EVENT_PIPE_PROVIDER];

/// Returns the name of an event of one of the runtime's native providers.
pub fn name(provider: &str, event_id: u32) -> Option<&'static str> {
    Some(row(provider, event_id)?.1)
}

/// Returns the fields of an event as `NAME:TYPE` in payload order, separated by spaces; `None` if they are unknown.
pub(super) fn fields(provider: &str, event_id: u32) -> Option<&'static str> {
    Some(row(provider, event_id)?.2).filter(|fields| !fields.is_empty())
}

/// Returns whether the payload of this event starts with the event's name (`GCDynamicEvent`).
pub fn is_dynamic(provider: &str, event_id: u32) -> bool {
    (provider, event_id) == (RUNTIME_PROVIDER, 39)
}

/// Reads the name from the payload of such an event, e.g. `CommittedUsage`.
pub fn dynamic_name(payload: &[u8]) -> Option<Utf16<'_>> {
    Reader::new(payload).utf16z().ok().filter(|name| !name.is_empty())
}

/// Returns the display name of such an event, e.g. `GC/CommittedUsage`.
pub fn dynamic_title(name: Utf16<'_>) -> String {
    format!("GC/{name}")
}

/// Returns the IDs and names of the events of a native provider, sorted by ID; none for any other provider.
pub fn names(provider: &str) -> impl Iterator<Item = (u32, &'static str)> {
    rows(provider).iter().map(|(id, name, _)| (*id, *name))
}

fn row(provider: &str, event_id: u32) -> Option<&'static Row> {
    let rows = rows(provider);
    Some(&rows[rows.binary_search_by_key(&event_id, |(id, ..)| *id).ok()?])
}

fn rows(provider: &str) -> &'static [Row] {
    match provider {
        RUNTIME_PROVIDER => RUNTIME,
        RUNDOWN_PROVIDER => RUNDOWN,
        PRIVATE_PROVIDER => PRIVATE,
        SAMPLE_PROFILER => &[(0, "ThreadSample", "Type:4")],
        EVENT_PIPE_PROVIDER => &[(1, "ProcessInfo", "")],
        _ => &[],
    }
}

const CLR: &str = "ClrInstanceID:clr";
const WORKERS: &str = "ActiveWorkerThreadCount:4 RetiredWorkerThreadCount:4 ClrInstanceID:clr";
const METHOD: &str = "MethodID:x8 ModuleID:x8 MethodStartAddress:x8 MethodSize:4 MethodToken:x4 MethodFlags:x4 ClrInstanceID:clr ReJITID:8";
const METHOD_VERBOSE: &str = "MethodID:x8 ModuleID:x8 MethodStartAddress:x8 MethodSize:4 MethodToken:x4 MethodFlags:x4 MethodNamespace:z \
    MethodName:z MethodSignature:z ClrInstanceID:clr ReJITID:8";
const MODULE: &str = "ModuleID:x8 AssemblyID:x8 ModuleFlags:x4 Reserved1:4 ModuleILPath:z ModuleNativePath:z ClrInstanceID:clr \
    ManagedPdbSignature:g ManagedPdbAge:4 ManagedPdbBuildPath:z NativePdbSignature:g NativePdbAge:4 NativePdbBuildPath:z";
const DOMAIN_MODULE: &str =
    "ModuleID:x8 AssemblyID:x8 AppDomainID:x8 ModuleFlags:x4 Reserved1:4 ModuleILPath:z ModuleNativePath:z ClrInstanceID:clr";
const ASSEMBLY: &str = "AssemblyID:x8 AppDomainID:x8 BindingID:x8 AssemblyFlags:x4 FullyQualifiedAssemblyName:z ClrInstanceID:clr";
const APP_DOMAIN: &str = "AppDomainID:x8 AppDomainFlags:x4 AppDomainName:z AppDomainIndex:4 ClrInstanceID:clr";
const HANDLER: &str = "EntryEIP:x8 MethodID:x8 MethodName:z ClrInstanceID:clr";
const TIERING: &str = "ClrInstanceID:clr Flags:x4";
const INFORMATION: &str = "ClrInstanceID:clr Sku:2 BclMajorVersion:2 BclMinorVersion:2 BclBuildNumber:2 BclQfeNumber:2 VMMajorVersion:2 \
    VMMinorVersion:2 VMBuildNumber:2 VMQfeNumber:2 StartupFlags:x4 StartupMode:1 CommandLine:z ComObjectGuid:g RuntimeDllPath:z";
const HEAP_STATS: &str = "GenerationSize0:8 TotalPromotedSize0:8 GenerationSize1:8 TotalPromotedSize1:8 GenerationSize2:8 \
    TotalPromotedSize2:8 GenerationSize3:8 TotalPromotedSize3:8 FinalizationPromotedSize:8 FinalizationPromotedCount:8 PinnedObjectCount:4 \
    SinkBlockCount:4 GCHandleCount:4 ClrInstanceID:clr GenerationSize4:8 TotalPromotedSize4:8";
const ALLOCATION_TICK: &str =
    "AllocationAmount:4 AllocationKind:4 ClrInstanceID:clr AllocationAmount64:8 TypeID:p TypeName:z HeapIndex:4 Address:p ObjectSize:8";
const ADJUSTMENT_STATS: &str = "Duration:f Throughput:f ThreadWave:f ThroughputWave:f ThroughputErrorEstimate:f \
    AverageThroughputErrorEstimate:f ThroughputRatio:f Confidence:f NewControlSetting:f NewThreadWaveMagnitude:2 ClrInstanceID:clr";
const THREAD_LIMITS: &str = "MinWorkerThreads:2 MaxWorkerThreads:2 MinIOCompletionThreads:2 MaxIOCompletionThreads:2 ClrInstanceID:clr";
const JITTING: &str =
    "MethodID:x8 ModuleID:x8 MethodToken:x4 MethodILSize:4 MethodNamespace:z MethodName:z MethodSignature:z ClrInstanceID:clr";
const JIT_MEMORY: &str =
    "MethodID:x8 ModuleID:x8 JitHotCodeRequestSize:8 JitRODataRequestSize:8 AllocatedSizeForJitCode:8 JitAllocFlag:x4 ClrInstanceID:clr";
const HEAP_HISTORY: &str = "FinalYoungestDesired:8 NumHeaps:4 CondemnedGeneration:4 Gen0ReductionCount:4 Reason:gcreason \
    GlobalMechanisms:x4 ClrInstanceID:clr PauseMode:4 MemoryPressure:4 CondemnReasons0:x4 CondemnReasons1:x4";
const LOAD_START: &str =
    "ClrInstanceID:clr AssemblyName:z AssemblyPath:z RequestingAssembly:z AssemblyLoadContext:z RequestingAssemblyLoadContext:z";
const LOAD_STOP: &str = "ClrInstanceID:clr AssemblyName:z AssemblyPath:z RequestingAssembly:z AssemblyLoadContext:z \
    RequestingAssemblyLoadContext:z Success:4 ResultAssemblyName:z ResultAssemblyPath:z Cached:4";
const GC_SETTINGS: &str = "HardLimit:8 LOHThreshold:8 PhysicalMemoryConfig:8 Gen0MinBudgetConfig:8 Gen0MaxBudgetConfig:8 \
    HighMemPercentConfig:4 BitSettings:x4 ClrInstanceID:clr";

const RUNTIME: &[Row] = &[
    (1, "GCStart", "Count:4 Depth:4 Reason:gcreason Type:gctype ClrInstanceID:clr ClientSequenceNumber:8"),
    (2, "GCEnd", "Count:4 Depth:4 ClrInstanceID:clr"),
    (3, "GCRestartEEEnd", CLR),
    (4, "GCHeapStats", HEAP_STATS),
    (5, "GCCreateSegment", "Address:x8 Size:8 Type:4 ClrInstanceID:clr"),
    (6, "GCFreeSegment", "Address:x8 ClrInstanceID:clr"),
    (7, "GCRestartEEBegin", CLR),
    (8, "GCSuspendEEEnd", CLR),
    (9, "GCSuspendEEBegin", "Reason:suspend Count:4 ClrInstanceID:clr"),
    (10, "GCAllocationTick", ALLOCATION_TICK),
    (11, "GCCreateConcurrentThread", ""),
    (12, "GCTerminateConcurrentThread", ""),
    (13, "GCFinalizersEnd", "Count:4 ClrInstanceID:clr"),
    (14, "GCFinalizersBegin", CLR),
    (15, "BulkType", ""),
    (16, "GCBulkRootEdge", ""),
    (17, "GCBulkRootConditionalWeakTableElementEdge", ""),
    (18, "GCBulkNode", ""),
    (19, "GCBulkEdge", ""),
    (20, "GCSampledObjectAllocationHigh", ""),
    (21, "GCBulkSurvivingObjectRanges", ""),
    (22, "GCBulkMovedObjectRanges", ""),
    (23, "GCGenerationRange", ""),
    (25, "GCMarkStackRoots", ""),
    (26, "GCMarkFinalizeQueueRoots", ""),
    (27, "GCMarkHandles", ""),
    (28, "GCMarkOlderGenerationRoots", ""),
    (29, "FinalizeObject", "TypeID:p ObjectID:p ClrInstanceID:clr"),
    (30, "SetGCHandle", "HandleID:p ObjectID:p Kind:4 Generation:4 AppDomainID:x8 ClrInstanceID:clr"),
    (31, "DestroyGCHandle", "HandleID:p ClrInstanceID:clr"),
    (32, "GCSampledObjectAllocationLow", ""),
    (33, "PinObjectAtGCTime", "HandleID:p ObjectID:p ObjectSize:8 TypeName:z ClrInstanceID:clr"),
    (35, "GCTriggered", "Reason:gcreason ClrInstanceID:clr"),
    (36, "GCBulkRootCCW", ""),
    (37, "GCBulkRCW", ""),
    (38, "GCBulkRootStaticVar", ""),
    (39, "GCDynamicEvent", "Name:z DataSize:4"),
    (50, "ThreadPoolWorkerThreadStart", WORKERS),
    (51, "ThreadPoolWorkerThreadStop", WORKERS),
    (52, "ThreadPoolWorkerThreadRetirementStart", WORKERS),
    (53, "ThreadPoolWorkerThreadRetirementStop", WORKERS),
    (54, "ThreadPoolWorkerThreadAdjustmentSample", "Throughput:f ClrInstanceID:clr"),
    (55, "ThreadPoolWorkerThreadAdjustmentAdjustment", "AverageThroughput:f NewWorkerThreadCount:4 Reason:adjustment ClrInstanceID:clr"),
    (56, "ThreadPoolWorkerThreadAdjustmentStats", ADJUSTMENT_STATS),
    (57, "ThreadPoolWorkerThreadWait", WORKERS),
    (58, "YieldProcessorMeasurement", "ClrInstanceID:clr NsPerYield:f EstablishedNsPerYield:f"),
    (59, "ThreadPoolMinMaxThreads", THREAD_LIMITS),
    (60, "ThreadPoolWorkingThreadCount", "Count:4 ClrInstanceID:clr"),
    (61, "ThreadPoolEnqueue", "WorkID:p ClrInstanceID:clr"),
    (62, "ThreadPoolDequeue", "WorkID:p ClrInstanceID:clr"),
    (63, "ThreadPoolIOEnqueue", "NativeOverlapped:p Overlapped:p MultiDequeues:4 ClrInstanceID:clr"),
    (64, "ThreadPoolIODequeue", "NativeOverlapped:p Overlapped:p ClrInstanceID:clr"),
    (65, "ThreadPoolIOPack", "NativeOverlapped:p Overlapped:p ClrInstanceID:clr"),
    (70, "ThreadCreating", "ID:p ClrInstanceID:clr"),
    (71, "ThreadRunning", "ID:p ClrInstanceID:clr"),
    (72, "MethodDetails", ""),
    (73, "TypeLoadStart", "TypeLoadStartID:4 ClrInstanceID:clr"),
    (74, "TypeLoadStop", "TypeLoadStartID:4 ClrInstanceID:clr LoadLevel:2 TypeID:x8 TypeName:z"),
    (80, "ExceptionThrown", "ExceptionType:z ExceptionMessage:z ExceptionEIP:p ExceptionHRESULT:x4 ExceptionFlags:2 ClrInstanceID:clr"),
    (81, "ContentionStart", "ContentionFlags:1 ClrInstanceID:clr LockID:p AssociatedObjectID:p LockOwnerThreadID:8"),
    (83, "AppDomainMemAllocated", ""),
    (84, "AppDomainMemSurvived", ""),
    (85, "ThreadCreated", "ManagedThreadID:x8 AppDomainID:x8 Flags:x4 ManagedThreadIndex:4 OSThreadID:4 ClrInstanceID:clr"),
    (86, "ThreadTerminated", ""),
    (87, "ThreadDomainEnter", ""),
    (88, "ILStubGenerated", ""),
    (89, "ILStubCacheHit", ""),
    (90, "ContentionLockCreated", "LockID:p AssociatedObjectID:p ClrInstanceID:clr"),
    (91, "ContentionStop", "ContentionFlags:1 ClrInstanceID:clr DurationNs:f"),
    (141, "MethodLoad", METHOD),
    (142, "MethodUnload", METHOD),
    (143, "MethodLoadVerbose", METHOD_VERBOSE),
    (144, "MethodUnloadVerbose", METHOD_VERBOSE),
    (145, "MethodJittingStarted", JITTING),
    (146, "MethodJitMemoryAllocatedForCode", JIT_MEMORY),
    (151, "DomainModuleLoad", DOMAIN_MODULE),
    (152, "ModuleLoad", MODULE),
    (153, "ModuleUnload", MODULE),
    (154, "AssemblyLoad", ASSEMBLY),
    (155, "AssemblyUnload", ASSEMBLY),
    (156, "AppDomainLoad", APP_DOMAIN),
    (157, "AppDomainUnload", APP_DOMAIN),
    (159, "R2RGetEntryPoint", ""),
    (160, "R2RGetEntryPointStart", ""),
    (185, "MethodJitInliningSucceeded", ""),
    (186, "MethodJitInliningFailedAnsi", ""),
    (187, "RuntimeInformationStart", INFORMATION),
    (188, "MethodJitTailCallSucceeded", ""),
    (189, "MethodJitTailCallFailedAnsi", ""),
    (190, "MethodILToNativeMap", ""),
    (191, "MethodJitTailCallFailed", ""),
    (192, "MethodJitInliningFailed", ""),
    (200, "IncreaseMemoryPressure", ""),
    (201, "DecreaseMemoryPressure", ""),
    (202, "GCMarkWithType", "HeapNum:4 ClrInstanceID:clr Type:4 Bytes:8"),
    (203, "GCJoin", "Heap:4 JoinTime:4 JoinType:4 ClrInstanceID:clr JoinID:4"),
    (204, "GCPerHeapHistory", ""),
    (205, "GCGlobalHeapHistory", HEAP_HISTORY),
    (209, "GCFitBucketInfo", ""),
    (250, "ExceptionCatchStart", HANDLER),
    (251, "ExceptionCatchStop", ""),
    (252, "ExceptionFinallyStart", HANDLER),
    (253, "ExceptionFinallyStop", ""),
    (254, "ExceptionFilterStart", HANDLER),
    (255, "ExceptionFilterStop", ""),
    (256, "ExceptionThrownStop", ""),
    (280, "TieredCompilationSettings", TIERING),
    (281, "TieredCompilationPause", CLR),
    (282, "TieredCompilationResume", "ClrInstanceID:clr NewMethodCount:4"),
    (283, "TieredCompilationBackgroundJitStart", "ClrInstanceID:clr PendingMethodCount:4"),
    (284, "TieredCompilationBackgroundJitStop", "ClrInstanceID:clr PendingMethodCount:4 JittedMethodCount:4"),
    (290, "AssemblyLoadStart", LOAD_START),
    (291, "AssemblyLoadStop", LOAD_STOP),
    (292, "ResolutionAttempted", ""),
    (293, "AssemblyLoadContextResolvingHandlerInvoked", ""),
    (294, "AppDomainAssemblyResolveHandlerInvoked", ""),
    (295, "AssemblyLoadFromResolveHandlerInvoked", ""),
    (296, "KnownPathProbed", "ClrInstanceID:clr FilePath:z Source:2 Result:x4"),
    (301, "WaitHandleWaitStart", "WaitSource:1 AssociatedObjectID:p ClrInstanceID:clr"),
    (302, "WaitHandleWaitStop", CLR),
    (303, "AllocationSampled", "AllocationKind:4 ClrInstanceID:clr TypeID:p TypeName:z Address:p ObjectSize:8 SampledByteOffset:8"),
];

const RUNDOWN: &[Row] = &[
    (10, "GCSettingsRundown", GC_SETTINGS),
    (141, "MethodDCStart", METHOD),
    (142, "MethodDCEnd", METHOD),
    (143, "MethodDCStartVerbose", METHOD_VERBOSE),
    (144, "MethodDCEndVerbose", METHOD_VERBOSE),
    (145, "DCStartComplete", CLR),
    (146, "DCEndComplete", CLR),
    (147, "DCStartInit", CLR),
    (148, "DCEndInit", CLR),
    (149, "MethodDCStartILToNativeMap", ""),
    (150, "MethodDCEndILToNativeMap", ""),
    (151, "DomainModuleDCStart", DOMAIN_MODULE),
    (152, "DomainModuleDCEnd", DOMAIN_MODULE),
    (153, "ModuleDCStart", MODULE),
    (154, "ModuleDCEnd", MODULE),
    (155, "AssemblyDCStart", ASSEMBLY),
    (156, "AssemblyDCEnd", ASSEMBLY),
    (157, "AppDomainDCStart", APP_DOMAIN),
    (158, "AppDomainDCEnd", APP_DOMAIN),
    (187, "RuntimeInformationDCStart", INFORMATION),
    (280, "TieredCompilationSettingsDCStart", TIERING),
    (300, "ExecutionCheckpointDCEnd", "ClrInstanceID:clr CheckpointName:z CheckpointTimestamp:8"),
];

/// Only the events that .NET Core writes; the rest of the manifest is about security and binding in the .NET Framework.
const PRIVATE: &[Row] = &[
    (1, "GCDecision", "DoCompact:4 ClrInstanceID:clr"),
    (2, "GCSettings", "SegmentSize:8 LargeObjectSegmentSize:8 ServerGC:4 ClrInstanceID:clr"),
    (3, "GCOptimized", "DesiredAllocation:8 NewAllocation:8 GenerationNumber:4 ClrInstanceID:clr"),
    (4, "GCPerHeapHistory", ""),
    (5, "GCGlobalHeapHistory", ""),
    (6, "GCJoin", "Heap:4 JoinTime:4 JoinType:4 ClrInstanceID:clr"),
    (7, "PrvGCMarkStackRoots", "HeapNum:4 ClrInstanceID:clr"),
    (8, "PrvGCMarkFinalizeQueueRoots", "HeapNum:4 ClrInstanceID:clr"),
    (9, "PrvGCMarkHandles", "HeapNum:4 ClrInstanceID:clr"),
    (10, "PrvGCMarkCards", "HeapNum:4 ClrInstanceID:clr"),
    (11, "BGCBegin", CLR),
    (12, "BGC1stNonConEnd", CLR),
    (13, "BGC1stConEnd", CLR),
    (14, "BGC2ndNonConBegin", CLR),
    (15, "BGC2ndNonConEnd", CLR),
    (16, "BGC2ndConBegin", CLR),
    (17, "BGC2ndConEnd", CLR),
    (18, "BGCPlanEnd", CLR),
    (19, "BGCSweepEnd", CLR),
    (20, "BGCDrainMark", "Objects:8 ClrInstanceID:clr"),
    (21, "BGCRevisit", "Pages:8 Objects:8 IsLarge:4 ClrInstanceID:clr"),
    (22, "BGCOverflow", "Min:x8 Max:x8 Objects:8 IsLarge:4 ClrInstanceID:clr GenNumber:4"),
    (23, "BGCAllocWaitBegin", "Reason:4 ClrInstanceID:clr"),
    (24, "BGCAllocWaitEnd", "Reason:4 ClrInstanceID:clr"),
    (25, "GCFullNotify", "GenNumber:4 IsAlloc:4 ClrInstanceID:clr"),
    (26, "BGC1stSweepEnd", "GenNumber:4 ClrInstanceID:clr"),
    (80, "EEStartupStart", CLR),
    (81, "EEStartupEnd", CLR),
    (82, "EEConfigSetup", ""),
    (83, "EEConfigSetupEnd", ""),
    (84, "LdSysBases", ""),
    (85, "LdSysBasesEnd", ""),
    (86, "ExecExe", ""),
    (87, "ExecExeEnd", ""),
    (88, "Main", ""),
    (89, "MainEnd", ""),
    (90, "ApplyPolicyStart", ""),
    (91, "ApplyPolicyEnd", ""),
    (92, "LdLibShFolder", ""),
    (93, "LdLibShFolderEnd", ""),
    (94, "PrestubWorker", ""),
    (95, "PrestubWorkerEnd", ""),
    (96, "GetInstallationStart", ""),
    (97, "GetInstallationEnd", ""),
    (98, "OpenHModule", ""),
    (99, "OpenHModuleEnd", ""),
    (100, "ExplicitBindStart", ""),
    (101, "ExplicitBindEnd", ""),
    (102, "ParseXml", ""),
    (103, "ParseXmlEnd", ""),
    (104, "InitDefaultDomain", ""),
    (105, "InitDefaultDomainEnd", ""),
    (106, "InitSecurity", ""),
    (107, "InitSecurityEnd", ""),
    (108, "AllowBindingRedirs", ""),
    (109, "AllowBindingRedirsEnd", ""),
    (110, "EEConfigSync", ""),
    (111, "EEConfigSyncEnd", ""),
    (112, "FusionBinding", ""),
    (113, "FusionBindingEnd", ""),
    (114, "LoaderCatchCall", ""),
    (115, "LoaderCatchCallEnd", ""),
    (116, "FusionInit", ""),
    (117, "FusionInitEnd", ""),
    (118, "FusionAppCtx", ""),
    (119, "FusionAppCtxEnd", ""),
    (120, "Fusion2EE", ""),
    (121, "Fusion2EEEnd", ""),
    (122, "SecurityCatchCall", ""),
    (123, "SecurityCatchCallEnd", ""),
    (151, "CLRStackWalkPrivate", ""),
    (158, "ModuleRangeLoadPrivate", ""),
    (159, "BindingPolicyPhaseStart", ""),
    (160, "BindingPolicyPhaseEnd", ""),
    (161, "BindingNgenPhaseStart", ""),
    (162, "BindingNgenPhaseEnd", ""),
    (163, "BindingLookupAndProbingPhaseStart", ""),
    (164, "BindingLookupAndProbingPhaseEnd", ""),
    (165, "LoaderPhaseStart", ""),
    (166, "LoaderPhaseEnd", ""),
    (191, "FailFast", ""),
    (192, "PrvFinalizeObject", "TypeID:p ObjectID:p ClrInstanceID:clr TypeName:z"),
    (193, "CCWRefCountChangeAnsi", ""),
    (194, "PrvSetGCHandle", "HandleID:p ObjectID:p Kind:4 Generation:4 AppDomainID:x8 ClrInstanceID:clr"),
    (195, "PrvDestroyGCHandle", "HandleID:p ClrInstanceID:clr"),
    (196, "FusionMessageEvent", ""),
    (197, "FusionErrorCodeEvent", ""),
    (199, "PinPlugAtGCTime", "PlugStart:p PlugEnd:p GapBeforeSize:8 ClrInstanceID:clr"),
    (200, "CCWRefCountChange", ""),
    (201, "MulticoreJit", ""),
    (202, "MulticoreJitMethodCodeReturned", ""),
    (310, "AllocRequest", "LoaderHeapPtr:p MemoryAddress:p RequestSize:4 Unused1:4 Unused2:8 ClrInstanceID:clr"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clr::manifest::value;

    #[test]
    fn tables_are_sorted_and_their_fields_are_valid() {
        for rows in [RUNTIME, RUNDOWN, PRIVATE] {
            assert!(rows.is_sorted_by(|(a, ..), (b, ..)| a < b));
            for (id, _, fields) in rows.iter().filter(|(.., fields)| !fields.is_empty()) {
                for field in fields.split(' ') {
                    let (name, kind) = field.split_once(':').unwrap_or_else(|| panic!("{id}: {field}"));
                    let mut reader = Reader::new(&[0; 16]);
                    assert!(!name.is_empty() && value(&mut reader, kind, 8).is_some(), "{id}: {field}");
                }
            }
        }
    }

    #[test]
    fn event_names_depend_on_the_provider() {
        assert_eq!(name("Microsoft-Windows-DotNETRuntime", 144), Some("MethodUnloadVerbose"));
        assert_eq!(name("Microsoft-Windows-DotNETRuntimeRundown", 144), Some("MethodDCEndVerbose"));
        assert_eq!(name("Microsoft-Windows-DotNETRuntimePrivate", 10), Some("PrvGCMarkCards"));
        assert_eq!(name("Microsoft-Windows-DotNETRuntime", 9999), None);
        assert_eq!(name("Demo", 1), None);
    }
}
