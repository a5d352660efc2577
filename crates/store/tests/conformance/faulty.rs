//! A memory store with one fault.

use tollgate_store::Memory;

pub(crate) struct Faulty {
    pub(crate) memory: Memory,
    pub(crate) fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    // Of stores.
    ForgetsIds,
    LosesSettlements,
    TakesChainsLinkByLink,
    IgnoresExpiry,
    MixesNamespaces,
    IgnoresVersions,
    DeniesBeforeItLooksAtVersions,
    LooksUnderOldLimits,
    TopsUpNothing,
    ResetsNothing,
    ResetsOnlyCredit,
    SettlesWhatIsGone,
    RemarksNothing,
    AsksByTaking,
    AsksOnlyTheFirst,
    LosesWhatIsHandedOver,
    RepeatsHolders,
    MetersAnyKey,
    // Of records.
    WritesOneByOne,
    ReadsOneByOne,
    ReadsThenWrites,
    IgnoresTests,
    TestsForNull,
    KeepsWhatHasExpired,
    ChangesOnlyWhatIsThere,
    LosesPlaces,
    KeepsOldPlaces,
    MistakesThePrefix,
    IgnoresDirection,
    SkipsBetweenPages,
    ReadsWithoutCase,
    ListsOtherNamespaces,
    AcceptsAnyNumber,
    StandsStill,
    // Of both together.
    WritesBeforeItApplies,
    AppliesBeforeItWrites,
    WritesAgain,
    ForgetsNothing,
    ForgetsTooMuch,
    ForgetsAllAtOnce,
    MiscountsTheForgotten,
    NeverCloses,
    ClosesAll,
    ListsOneTwice,
    ListsWithoutScope,
    MetersNothing,
    MetersEverything,
    MetersNoSettlement,
    MetersTwice,
    MetersOneEntity,
    WritesUsageWhenAsked,
}

impl Fault {
    pub(crate) const OF_STORES: &[Fault] = &[
        Fault::ForgetsIds,
        Fault::LosesSettlements,
        Fault::TakesChainsLinkByLink,
        Fault::IgnoresExpiry,
        Fault::MixesNamespaces,
        Fault::IgnoresVersions,
        Fault::DeniesBeforeItLooksAtVersions,
        Fault::LooksUnderOldLimits,
        Fault::TopsUpNothing,
        Fault::ResetsNothing,
        Fault::ResetsOnlyCredit,
        Fault::SettlesWhatIsGone,
        Fault::RemarksNothing,
        Fault::AsksByTaking,
        Fault::AsksOnlyTheFirst,
        Fault::LosesWhatIsHandedOver,
        Fault::RepeatsHolders,
        Fault::MetersAnyKey,
    ];

    pub(crate) const OF_RECORDS: &[Fault] = &[
        Fault::WritesOneByOne,
        Fault::ReadsOneByOne,
        Fault::ReadsThenWrites,
        Fault::IgnoresTests,
        Fault::TestsForNull,
        Fault::KeepsWhatHasExpired,
        Fault::ChangesOnlyWhatIsThere,
        Fault::LosesPlaces,
        Fault::KeepsOldPlaces,
        Fault::MistakesThePrefix,
        Fault::IgnoresDirection,
        Fault::SkipsBetweenPages,
        Fault::ReadsWithoutCase,
        Fault::ListsOtherNamespaces,
        Fault::AcceptsAnyNumber,
        Fault::StandsStill,
    ];

    pub(crate) const OF_BACKENDS: &[Fault] = &[
        Fault::WritesBeforeItApplies,
        Fault::AppliesBeforeItWrites,
        Fault::WritesAgain,
        Fault::ForgetsNothing,
        Fault::ForgetsTooMuch,
        Fault::ForgetsAllAtOnce,
        Fault::MiscountsTheForgotten,
        Fault::NeverCloses,
        Fault::ClosesAll,
        Fault::ListsOneTwice,
        Fault::ListsWithoutScope,
        Fault::MetersNothing,
        Fault::MetersEverything,
        Fault::MetersNoSettlement,
        Fault::MetersTwice,
        Fault::MetersOneEntity,
        Fault::WritesUsageWhenAsked,
        Fault::MixesNamespaces,
        Fault::ForgetsIds,
        Fault::SettlesWhatIsGone,
    ];
}

impl Faulty {
    pub(crate) fn new(memory: Memory, fault: Fault) -> Faulty {
        Faulty { memory, fault }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}
