//! Write-back, fence, persistence domains, counters and the crash simulator of durum.
