//! Names and types of the fields of native runtime events, which are missing from their metadata.
//!
//! Used to display single events; analyses use the typed views in [`payload`](super::payload). Later versions of an event only add fields at
//! the end, so one list covers all versions: fields beyond the end of the payload are absent.
//!
//! Source: `ClrEtwAll.man` of the runtime, verified byte by byte against the output of runtimes 3.1, 9 and 10.

use super::payload::{AdjustmentReason, GcReason, GcType};
use crate::nettrace::Value;
use crate::wire::Reader;

/// A field and its value.
#[derive(Debug, Clone)]
pub struct NativeField<'a> {
    /// Name in the manifest.
    pub name: &'static str,
    /// Decoded value.
    pub value: Value<'a>,
    /// Whether the value is an address, identifier or set of flags, usually displayed in hexadecimal.
    pub is_hex: bool,
    /// Symbolic name of the value.
    pub symbol: Option<&'static str>,
}

/// Returns whether the fields of an event are known.
pub fn is_described(provider: &str, event_id: u32) -> bool {
    layout(provider, event_id).is_some()
}

/// Calls `each` for every known field of an event, in payload order, up to the end of the payload.
pub fn read<'a>(provider: &str, event_id: u32, payload: &'a [u8], pointer_size: u8, mut each: impl FnMut(NativeField<'a>)) {
    let mut reader = Reader::new(payload);
    for (name, kind) in layout(provider, event_id).unwrap_or_default().split(' ').filter_map(|field| field.split_once(':')) {
        let Some((value, is_hex)) = value(&mut reader, kind, pointer_size) else { return };
        let number = if let Value::UInt(number) = value { u32::try_from(number).ok() } else { None };
        let word = number.and_then(|number| match kind {
            "gcreason" => Some(GcReason(number).name()),
            "gctype" => Some(GcType(number).name()),
            "adjustment" => Some(AdjustmentReason(number).name()),
            "suspend" => SUSPEND_REASONS.get(number as usize).copied(),
            _ => None,
        });
        // A process has exactly one runtime, with instance ID 0.
        if kind != "clr" {
            each(NativeField { name, value, is_hex, symbol: word });
        }
    }
}

/// Reasons for suspending the threads.
const SUSPEND_REASONS: [&str; 8] =
    ["other", "GC", "AppDomain shutdown", "code pitching", "shutdown", "debugger", "GC preparation", "debugger sweep"];

fn value<'a>(reader: &mut Reader<'a>, kind: &str, pointer_size: u8) -> Option<(Value<'a>, bool)> {
    let value = match kind {
        "1" => Value::UInt(reader.u8().ok()?.into()),
        "2" | "clr" => Value::UInt(reader.u16().ok()?.into()),
        "4" | "x4" | "gcreason" | "gctype" | "adjustment" | "suspend" => Value::UInt(reader.u32().ok()?.into()),
        "p" if pointer_size == 4 => Value::UInt(reader.u32().ok()?.into()),
        "8" | "x8" | "p" => Value::UInt(reader.u64().ok()?),
        "f" => Value::Float(reader.f64().ok()?),
        "z" => Value::Text(reader.utf16z().ok()?),
        "g" => Value::Guid(reader.array().ok()?),
        _ => return None,
    };
    Some((value, matches!(kind, "x4" | "x8" | "p")))
}

fn layout(provider: &str, event_id: u32) -> Option<&'static str> {
    let layouts = match provider {
        "Microsoft-Windows-DotNETRuntime" => RUNTIME,
        "Microsoft-Windows-DotNETRuntimeRundown" => RUNDOWN,
        "Microsoft-Windows-DotNETRuntimePrivate" => PRIVATE,
        "Microsoft-DotNETCore-SampleProfiler" => &[(0, "Type:4")],
        _ => return None,
    };
    let at = layouts.binary_search_by_key(&event_id, |(id, _)| *id).ok()?;
    Some(layouts[at].1)
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

const RUNTIME: &[(u32, &str)] = &[
    (1, "Count:4 Depth:4 Reason:gcreason Type:gctype ClrInstanceID:clr ClientSequenceNumber:8"),
    (2, "Count:4 Depth:4 ClrInstanceID:clr"),
    (3, CLR),
    (
        4,
        "GenerationSize0:8 TotalPromotedSize0:8 GenerationSize1:8 TotalPromotedSize1:8 GenerationSize2:8 TotalPromotedSize2:8 \
         GenerationSize3:8 TotalPromotedSize3:8 FinalizationPromotedSize:8 FinalizationPromotedCount:8 PinnedObjectCount:4 SinkBlockCount:4 \
         GCHandleCount:4 ClrInstanceID:clr GenerationSize4:8 TotalPromotedSize4:8",
    ),
    (5, "Address:x8 Size:8 Type:4 ClrInstanceID:clr"),
    (6, "Address:x8 ClrInstanceID:clr"),
    (7, CLR),
    (8, CLR),
    (9, "Reason:suspend Count:4 ClrInstanceID:clr"),
    (
        10,
        "AllocationAmount:4 AllocationKind:4 ClrInstanceID:clr AllocationAmount64:8 TypeID:p TypeName:z HeapIndex:4 Address:p ObjectSize:8",
    ),
    (13, "Count:4 ClrInstanceID:clr"),
    (14, CLR),
    (29, "TypeID:p ObjectID:p ClrInstanceID:clr"),
    (30, "HandleID:p ObjectID:p Kind:4 Generation:4 AppDomainID:x8 ClrInstanceID:clr"),
    (31, "HandleID:p ClrInstanceID:clr"),
    (33, "HandleID:p ObjectID:p ObjectSize:8 TypeName:z ClrInstanceID:clr"),
    (35, "Reason:gcreason ClrInstanceID:clr"),
    (39, "Name:z DataSize:4"),
    (50, WORKERS),
    (51, WORKERS),
    (52, WORKERS),
    (53, WORKERS),
    (54, "Throughput:f ClrInstanceID:clr"),
    (55, "AverageThroughput:f NewWorkerThreadCount:4 Reason:adjustment ClrInstanceID:clr"),
    (
        56,
        "Duration:f Throughput:f ThreadWave:f ThroughputWave:f ThroughputErrorEstimate:f AverageThroughputErrorEstimate:f ThroughputRatio:f \
         Confidence:f NewControlSetting:f NewThreadWaveMagnitude:2 ClrInstanceID:clr",
    ),
    (57, WORKERS),
    (58, "ClrInstanceID:clr NsPerYield:f EstablishedNsPerYield:f"),
    (59, "MinWorkerThreads:2 MaxWorkerThreads:2 MinIOCompletionThreads:2 MaxIOCompletionThreads:2 ClrInstanceID:clr"),
    (60, "Count:4 ClrInstanceID:clr"),
    (61, "WorkID:p ClrInstanceID:clr"),
    (62, "WorkID:p ClrInstanceID:clr"),
    (63, "NativeOverlapped:p Overlapped:p MultiDequeues:4 ClrInstanceID:clr"),
    (64, "NativeOverlapped:p Overlapped:p ClrInstanceID:clr"),
    (65, "NativeOverlapped:p Overlapped:p ClrInstanceID:clr"),
    (70, "ID:p ClrInstanceID:clr"),
    (71, "ID:p ClrInstanceID:clr"),
    (73, "TypeLoadStartID:4 ClrInstanceID:clr"),
    (74, "TypeLoadStartID:4 ClrInstanceID:clr LoadLevel:2 TypeID:x8 TypeName:z"),
    (80, "ExceptionType:z ExceptionMessage:z ExceptionEIP:p ExceptionHRESULT:x4 ExceptionFlags:2 ClrInstanceID:clr"),
    (81, "ContentionFlags:1 ClrInstanceID:clr LockID:p AssociatedObjectID:p LockOwnerThreadID:8"),
    (85, "ManagedThreadID:x8 AppDomainID:x8 Flags:x4 ManagedThreadIndex:4 OSThreadID:4 ClrInstanceID:clr"),
    (90, "LockID:p AssociatedObjectID:p ClrInstanceID:clr"),
    (91, "ContentionFlags:1 ClrInstanceID:clr DurationNs:f"),
    (141, METHOD),
    (142, METHOD),
    (143, METHOD_VERBOSE),
    (144, METHOD_VERBOSE),
    (145, "MethodID:x8 ModuleID:x8 MethodToken:x4 MethodILSize:4 MethodNamespace:z MethodName:z MethodSignature:z ClrInstanceID:clr"),
    (
        146,
        "MethodID:x8 ModuleID:x8 JitHotCodeRequestSize:8 JitRODataRequestSize:8 AllocatedSizeForJitCode:8 JitAllocFlag:x4 ClrInstanceID:clr",
    ),
    (151, DOMAIN_MODULE),
    (152, MODULE),
    (153, MODULE),
    (154, ASSEMBLY),
    (155, ASSEMBLY),
    (156, APP_DOMAIN),
    (157, APP_DOMAIN),
    (187, INFORMATION),
    (202, "HeapNum:4 ClrInstanceID:clr Type:4 Bytes:8"),
    (203, "Heap:4 JoinTime:4 JoinType:4 ClrInstanceID:clr JoinID:4"),
    (
        205,
        "FinalYoungestDesired:8 NumHeaps:4 CondemnedGeneration:4 Gen0ReductionCount:4 Reason:gcreason GlobalMechanisms:x4 ClrInstanceID:clr \
         PauseMode:4 MemoryPressure:4 CondemnReasons0:x4 CondemnReasons1:x4",
    ),
    (250, HANDLER),
    (252, HANDLER),
    (254, HANDLER),
    (280, TIERING),
    (281, CLR),
    (282, "ClrInstanceID:clr NewMethodCount:4"),
    (283, "ClrInstanceID:clr PendingMethodCount:4"),
    (284, "ClrInstanceID:clr PendingMethodCount:4 JittedMethodCount:4"),
    (290, "ClrInstanceID:clr AssemblyName:z AssemblyPath:z RequestingAssembly:z AssemblyLoadContext:z RequestingAssemblyLoadContext:z"),
    (
        291,
        "ClrInstanceID:clr AssemblyName:z AssemblyPath:z RequestingAssembly:z AssemblyLoadContext:z RequestingAssemblyLoadContext:z \
         Success:4 ResultAssemblyName:z ResultAssemblyPath:z Cached:4",
    ),
    (296, "ClrInstanceID:clr FilePath:z Source:2 Result:x4"),
    (301, "WaitSource:1 AssociatedObjectID:p ClrInstanceID:clr"),
    (302, CLR),
    (303, "AllocationKind:4 ClrInstanceID:clr TypeID:p TypeName:z Address:p ObjectSize:8 SampledByteOffset:8"),
];

const RUNDOWN: &[(u32, &str)] = &[
    (
        10,
        "HardLimit:8 LOHThreshold:8 PhysicalMemoryConfig:8 Gen0MinBudgetConfig:8 Gen0MaxBudgetConfig:8 HighMemPercentConfig:4 \
         BitSettings:x4 ClrInstanceID:clr",
    ),
    (141, METHOD),
    (142, METHOD),
    (143, METHOD_VERBOSE),
    (144, METHOD_VERBOSE),
    (145, CLR),
    (146, CLR),
    (147, CLR),
    (148, CLR),
    (151, DOMAIN_MODULE),
    (152, DOMAIN_MODULE),
    (153, MODULE),
    (154, MODULE),
    (155, ASSEMBLY),
    (156, ASSEMBLY),
    (157, APP_DOMAIN),
    (158, APP_DOMAIN),
    (187, INFORMATION),
    (280, TIERING),
    (300, "ClrInstanceID:clr CheckpointName:z CheckpointTimestamp:8"),
];

const PRIVATE: &[(u32, &str)] = &[
    (1, "DoCompact:4 ClrInstanceID:clr"),
    (2, "SegmentSize:8 LargeObjectSegmentSize:8 ServerGC:4 ClrInstanceID:clr"),
    (3, "DesiredAllocation:8 NewAllocation:8 GenerationNumber:4 ClrInstanceID:clr"),
    (6, "Heap:4 JoinTime:4 JoinType:4 ClrInstanceID:clr"),
    (7, "HeapNum:4 ClrInstanceID:clr"),
    (8, "HeapNum:4 ClrInstanceID:clr"),
    (9, "HeapNum:4 ClrInstanceID:clr"),
    (10, "HeapNum:4 ClrInstanceID:clr"),
    (11, CLR),
    (12, CLR),
    (13, CLR),
    (14, CLR),
    (15, CLR),
    (16, CLR),
    (17, CLR),
    (18, CLR),
    (19, CLR),
    (20, "Objects:8 ClrInstanceID:clr"),
    (21, "Pages:8 Objects:8 IsLarge:4 ClrInstanceID:clr"),
    (22, "Min:x8 Max:x8 Objects:8 IsLarge:4 ClrInstanceID:clr GenNumber:4"),
    (23, "Reason:4 ClrInstanceID:clr"),
    (24, "Reason:4 ClrInstanceID:clr"),
    (25, "GenNumber:4 IsAlloc:4 ClrInstanceID:clr"),
    (26, "GenNumber:4 ClrInstanceID:clr"),
    (80, CLR),
    (81, CLR),
    (192, "TypeID:p ObjectID:p ClrInstanceID:clr TypeName:z"),
    (194, "HandleID:p ObjectID:p Kind:4 Generation:4 AppDomainID:x8 ClrInstanceID:clr"),
    (195, "HandleID:p ClrInstanceID:clr"),
    (199, "PlugStart:p PlugEnd:p GapBeforeSize:8 ClrInstanceID:clr"),
    (310, "LoaderHeapPtr:p MemoryAddress:p RequestSize:4 Unused1:4 Unused2:8 ClrInstanceID:clr"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Put;

    fn fields(event_id: u32, payload: &[u8], pointer_size: u8) -> Vec<String> {
        let mut all = Vec::new();
        read("Microsoft-Windows-DotNETRuntime", event_id, payload, pointer_size, |field| {
            let value = match field.value {
                Value::UInt(number) if field.is_hex => format!("{number:#x}"),
                Value::UInt(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                Value::Text(text) => text.to_string(),
                other => format!("{other:?}"),
            };
            all.push(format!("{}={value}{}", field.name, field.symbol.map(|word| format!(" ({word})")).unwrap_or_default()));
        });
        all
    }

    #[test]
    fn layout_tables_are_sorted_and_valid() {
        for layouts in [RUNTIME, RUNDOWN, PRIVATE] {
            assert!(layouts.is_sorted_by(|(a, _), (b, _)| a < b));
            for (id, layout) in layouts {
                for field in layout.split(' ') {
                    let (name, kind) = field.split_once(':').unwrap_or_else(|| panic!("{id}: {field}"));
                    let mut reader = Reader::new(&[0; 16]);
                    assert!(!name.is_empty() && value(&mut reader, kind, 8).is_some(), "{id}: {field}");
                }
            }
        }
        for (provider, id) in [("Microsoft-Windows-DotNETRuntime", 80), ("Microsoft-DotNETCore-SampleProfiler", 0)] {
            assert!(is_described(provider, id));
        }
        assert!(!is_described("Demo", 80) && !is_described("Microsoft-Windows-DotNETRuntime", 9999));
    }

    /// Sizes seen in streams of 9 and 10, with empty texts.
    #[test]
    fn layouts_cover_whole_payloads() {
        let [runtime, rundown] = ["Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown"];
        for (provider, id, bytes) in [
            (runtime, 4, 110),
            (runtime, 58, 18),
            (runtime, 146, 46),
            (runtime, 291, 24),
            (rundown, 10, 50),
            (rundown, 280, 6),
            (rundown, 300, 12),
        ] {
            let payload = vec![0; bytes + 1];
            let mut reader = Reader::new(&payload);
            for field in layout(provider, id).unwrap().split(' ') {
                value(&mut reader, field.split_once(':').unwrap().1, 8).unwrap();
            }
            assert_eq!(reader.at(), bytes, "{id}");
        }
    }

    #[test]
    fn truncated_payload_yields_its_complete_fields() {
        let mut payload = Vec::new();
        for word in [7_u32, 2, 1, 0] {
            payload.put_u32(word);
        }
        let first = ["Count=7", "Depth=2", &format!("Reason=1 ({})", GcReason(1).name()), &format!("Type=0 ({})", GcType(0).name())];
        assert_eq!(fields(1, &payload, 8), first);
        assert_eq!(fields(1, &payload[..9], 8), ["Count=7", "Depth=2"]);
        payload.put_u16(0);
        payload.put_u64(99);
        assert_eq!(fields(1, &payload, 8).last().map(String::as_str), Some("ClientSequenceNumber=99"));
        assert_eq!(fields(1, &[], 8), [""; 0]);
    }

    #[test]
    fn pointer_size_follows_the_process() {
        let mut payload = Vec::new();
        payload.put_utf16z("Boom");
        payload.put_utf16z("it was");
        payload.put_u32(0x1234);
        payload.put_u32(0x8013_1509);
        payload.put_u16(0x10);
        payload.put_u16(0);
        let expected =
            ["ExceptionType=Boom", "ExceptionMessage=it was", "ExceptionEIP=0x1234", "ExceptionHRESULT=0x80131509", "ExceptionFlags=16"];
        assert_eq!(fields(80, &payload, 4), expected);
    }
}
