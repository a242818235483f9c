//! Names of the runtime's native events, which are missing from their metadata.
//!
//! Source: `ClrEtwAll.man` of the runtime; symbols without version suffix, as in Microsoft's documentation.

use crate::wire::{Reader, Utf16};

/// Returns the name of an event of one of the runtime's native providers.
pub fn name(provider: &str, event_id: u32) -> Option<&'static str> {
    let names = names(provider);
    let found = names.binary_search_by_key(&event_id, |(id, _)| *id).ok()?;
    Some(names[found].1)
}

/// Returns whether the payload of this event starts with the event's name (`GCDynamicEvent`).
pub fn is_dynamic(provider: &str, event_id: u32) -> bool {
    (provider, event_id) == ("Microsoft-Windows-DotNETRuntime", 39)
}

/// Reads the name from the payload of such an event, e.g. `CommittedUsage`.
pub fn dynamic_name(payload: &[u8]) -> Option<Utf16<'_>> {
    Reader::new(payload).utf16z().ok().filter(|name| !name.is_empty())
}

/// Returns the display name of such an event, e.g. `GC/CommittedUsage`.
pub fn dynamic_title(name: Utf16<'_>) -> String {
    format!("GC/{name}")
}

/// Returns the events of a native provider, sorted by ID; empty for any other provider.
pub fn names(provider: &str) -> &'static [(u32, &'static str)] {
    match provider {
        "Microsoft-Windows-DotNETRuntime" => RUNTIME,
        "Microsoft-Windows-DotNETRuntimeRundown" => RUNDOWN,
        "Microsoft-Windows-DotNETRuntimePrivate" => PRIVATE,
        "Microsoft-DotNETCore-SampleProfiler" => &[(0, "ThreadSample")],
        "Microsoft-DotNETCore-EventPipe" => &[(1, "ProcessInfo")],
        _ => &[],
    }
}

const RUNTIME: &[(u32, &str)] = &[
    (1, "GCStart"),
    (2, "GCEnd"),
    (3, "GCRestartEEEnd"),
    (4, "GCHeapStats"),
    (5, "GCCreateSegment"),
    (6, "GCFreeSegment"),
    (7, "GCRestartEEBegin"),
    (8, "GCSuspendEEEnd"),
    (9, "GCSuspendEEBegin"),
    (10, "GCAllocationTick"),
    (11, "GCCreateConcurrentThread"),
    (12, "GCTerminateConcurrentThread"),
    (13, "GCFinalizersEnd"),
    (14, "GCFinalizersBegin"),
    (15, "BulkType"),
    (16, "GCBulkRootEdge"),
    (17, "GCBulkRootConditionalWeakTableElementEdge"),
    (18, "GCBulkNode"),
    (19, "GCBulkEdge"),
    (20, "GCSampledObjectAllocationHigh"),
    (21, "GCBulkSurvivingObjectRanges"),
    (22, "GCBulkMovedObjectRanges"),
    (23, "GCGenerationRange"),
    (25, "GCMarkStackRoots"),
    (26, "GCMarkFinalizeQueueRoots"),
    (27, "GCMarkHandles"),
    (28, "GCMarkOlderGenerationRoots"),
    (29, "FinalizeObject"),
    (30, "SetGCHandle"),
    (31, "DestroyGCHandle"),
    (32, "GCSampledObjectAllocationLow"),
    (33, "PinObjectAtGCTime"),
    (35, "GCTriggered"),
    (36, "GCBulkRootCCW"),
    (37, "GCBulkRCW"),
    (38, "GCBulkRootStaticVar"),
    (39, "GCDynamicEvent"),
    (50, "ThreadPoolWorkerThreadStart"),
    (51, "ThreadPoolWorkerThreadStop"),
    (52, "ThreadPoolWorkerThreadRetirementStart"),
    (53, "ThreadPoolWorkerThreadRetirementStop"),
    (54, "ThreadPoolWorkerThreadAdjustmentSample"),
    (55, "ThreadPoolWorkerThreadAdjustmentAdjustment"),
    (56, "ThreadPoolWorkerThreadAdjustmentStats"),
    (57, "ThreadPoolWorkerThreadWait"),
    (58, "YieldProcessorMeasurement"),
    (59, "ThreadPoolMinMaxThreads"),
    (60, "ThreadPoolWorkingThreadCount"),
    (61, "ThreadPoolEnqueue"),
    (62, "ThreadPoolDequeue"),
    (63, "ThreadPoolIOEnqueue"),
    (64, "ThreadPoolIODequeue"),
    (65, "ThreadPoolIOPack"),
    (70, "ThreadCreating"),
    (71, "ThreadRunning"),
    (72, "MethodDetails"),
    (73, "TypeLoadStart"),
    (74, "TypeLoadStop"),
    (80, "ExceptionThrown"),
    (81, "ContentionStart"),
    (83, "AppDomainMemAllocated"),
    (84, "AppDomainMemSurvived"),
    (85, "ThreadCreated"),
    (86, "ThreadTerminated"),
    (87, "ThreadDomainEnter"),
    (88, "ILStubGenerated"),
    (89, "ILStubCacheHit"),
    (90, "ContentionLockCreated"),
    (91, "ContentionStop"),
    (141, "MethodLoad"),
    (142, "MethodUnload"),
    (143, "MethodLoadVerbose"),
    (144, "MethodUnloadVerbose"),
    (145, "MethodJittingStarted"),
    (146, "MethodJitMemoryAllocatedForCode"),
    (151, "DomainModuleLoad"),
    (152, "ModuleLoad"),
    (153, "ModuleUnload"),
    (154, "AssemblyLoad"),
    (155, "AssemblyUnload"),
    (156, "AppDomainLoad"),
    (157, "AppDomainUnload"),
    (159, "R2RGetEntryPoint"),
    (160, "R2RGetEntryPointStart"),
    (185, "MethodJitInliningSucceeded"),
    (186, "MethodJitInliningFailedAnsi"),
    (187, "RuntimeInformationStart"),
    (188, "MethodJitTailCallSucceeded"),
    (189, "MethodJitTailCallFailedAnsi"),
    (190, "MethodILToNativeMap"),
    (191, "MethodJitTailCallFailed"),
    (192, "MethodJitInliningFailed"),
    (200, "IncreaseMemoryPressure"),
    (201, "DecreaseMemoryPressure"),
    (202, "GCMarkWithType"),
    (203, "GCJoin"),
    (204, "GCPerHeapHistory"),
    (205, "GCGlobalHeapHistory"),
    (209, "GCFitBucketInfo"),
    (250, "ExceptionCatchStart"),
    (251, "ExceptionCatchStop"),
    (252, "ExceptionFinallyStart"),
    (253, "ExceptionFinallyStop"),
    (254, "ExceptionFilterStart"),
    (255, "ExceptionFilterStop"),
    (256, "ExceptionThrownStop"),
    (280, "TieredCompilationSettings"),
    (281, "TieredCompilationPause"),
    (282, "TieredCompilationResume"),
    (283, "TieredCompilationBackgroundJitStart"),
    (284, "TieredCompilationBackgroundJitStop"),
    (290, "AssemblyLoadStart"),
    (291, "AssemblyLoadStop"),
    (292, "ResolutionAttempted"),
    (293, "AssemblyLoadContextResolvingHandlerInvoked"),
    (294, "AppDomainAssemblyResolveHandlerInvoked"),
    (295, "AssemblyLoadFromResolveHandlerInvoked"),
    (296, "KnownPathProbed"),
    (301, "WaitHandleWaitStart"),
    (302, "WaitHandleWaitStop"),
    (303, "AllocationSampled"),
];

const RUNDOWN: &[(u32, &str)] = &[
    (10, "GCSettingsRundown"),
    (141, "MethodDCStart"),
    (142, "MethodDCEnd"),
    (143, "MethodDCStartVerbose"),
    (144, "MethodDCEndVerbose"),
    (145, "DCStartComplete"),
    (146, "DCEndComplete"),
    (147, "DCStartInit"),
    (148, "DCEndInit"),
    (149, "MethodDCStartILToNativeMap"),
    (150, "MethodDCEndILToNativeMap"),
    (151, "DomainModuleDCStart"),
    (152, "DomainModuleDCEnd"),
    (153, "ModuleDCStart"),
    (154, "ModuleDCEnd"),
    (155, "AssemblyDCStart"),
    (156, "AssemblyDCEnd"),
    (157, "AppDomainDCStart"),
    (158, "AppDomainDCEnd"),
    (187, "RuntimeInformationDCStart"),
    (280, "TieredCompilationSettingsDCStart"),
    (300, "ExecutionCheckpointDCEnd"),
];

/// Only the events that .NET Core writes; the rest of the manifest is about security and binding in the .NET Framework.
const PRIVATE: &[(u32, &str)] = &[
    (1, "GCDecision"),
    (2, "GCSettings"),
    (3, "GCOptimized"),
    (4, "GCPerHeapHistory"),
    (5, "GCGlobalHeapHistory"),
    (6, "GCJoin"),
    (7, "PrvGCMarkStackRoots"),
    (8, "PrvGCMarkFinalizeQueueRoots"),
    (9, "PrvGCMarkHandles"),
    (10, "PrvGCMarkCards"),
    (11, "BGCBegin"),
    (12, "BGC1stNonConEnd"),
    (13, "BGC1stConEnd"),
    (14, "BGC2ndNonConBegin"),
    (15, "BGC2ndNonConEnd"),
    (16, "BGC2ndConBegin"),
    (17, "BGC2ndConEnd"),
    (18, "BGCPlanEnd"),
    (19, "BGCSweepEnd"),
    (20, "BGCDrainMark"),
    (21, "BGCRevisit"),
    (22, "BGCOverflow"),
    (23, "BGCAllocWaitBegin"),
    (24, "BGCAllocWaitEnd"),
    (25, "GCFullNotify"),
    (26, "BGC1stSweepEnd"),
    (80, "EEStartupStart"),
    (81, "EEStartupEnd"),
    (82, "EEConfigSetup"),
    (83, "EEConfigSetupEnd"),
    (84, "LdSysBases"),
    (85, "LdSysBasesEnd"),
    (86, "ExecExe"),
    (87, "ExecExeEnd"),
    (88, "Main"),
    (89, "MainEnd"),
    (90, "ApplyPolicyStart"),
    (91, "ApplyPolicyEnd"),
    (92, "LdLibShFolder"),
    (93, "LdLibShFolderEnd"),
    (94, "PrestubWorker"),
    (95, "PrestubWorkerEnd"),
    (96, "GetInstallationStart"),
    (97, "GetInstallationEnd"),
    (98, "OpenHModule"),
    (99, "OpenHModuleEnd"),
    (100, "ExplicitBindStart"),
    (101, "ExplicitBindEnd"),
    (102, "ParseXml"),
    (103, "ParseXmlEnd"),
    (104, "InitDefaultDomain"),
    (105, "InitDefaultDomainEnd"),
    (106, "InitSecurity"),
    (107, "InitSecurityEnd"),
    (108, "AllowBindingRedirs"),
    (109, "AllowBindingRedirsEnd"),
    (110, "EEConfigSync"),
    (111, "EEConfigSyncEnd"),
    (112, "FusionBinding"),
    (113, "FusionBindingEnd"),
    (114, "LoaderCatchCall"),
    (115, "LoaderCatchCallEnd"),
    (116, "FusionInit"),
    (117, "FusionInitEnd"),
    (118, "FusionAppCtx"),
    (119, "FusionAppCtxEnd"),
    (120, "Fusion2EE"),
    (121, "Fusion2EEEnd"),
    (122, "SecurityCatchCall"),
    (123, "SecurityCatchCallEnd"),
    (151, "CLRStackWalkPrivate"),
    (158, "ModuleRangeLoadPrivate"),
    (159, "BindingPolicyPhaseStart"),
    (160, "BindingPolicyPhaseEnd"),
    (161, "BindingNgenPhaseStart"),
    (162, "BindingNgenPhaseEnd"),
    (163, "BindingLookupAndProbingPhaseStart"),
    (164, "BindingLookupAndProbingPhaseEnd"),
    (165, "LoaderPhaseStart"),
    (166, "LoaderPhaseEnd"),
    (191, "FailFast"),
    (192, "PrvFinalizeObject"),
    (193, "CCWRefCountChangeAnsi"),
    (194, "PrvSetGCHandle"),
    (195, "PrvDestroyGCHandle"),
    (196, "FusionMessageEvent"),
    (197, "FusionErrorCodeEvent"),
    (199, "PinPlugAtGCTime"),
    (200, "CCWRefCountChange"),
    (201, "MulticoreJit"),
    (202, "MulticoreJitMethodCodeReturned"),
    (310, "AllocRequest"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_name_tables_are_sorted() {
        for names in [RUNTIME, RUNDOWN, PRIVATE] {
            assert!(names.is_sorted_by(|(a, _), (b, _)| a < b));
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
